"""`riskgate notices`: check the sinks, try them, and see which take notices."""

from __future__ import annotations

import json
import secrets
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from google.protobuf.timestamp_pb2 import Timestamp
from phylactery.riskgate.v1 import control_pb2, control_pb2_grpc
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.ids import new_id

from phylactery_riskgate.cli.common import (
    FAILED,
    AsJson,
    DataDir,
    open_database,
    settings_of,
    tell,
    unusable,
    warn,
)
from phylactery_riskgate.cli.remote import TokenFile, connect
from phylactery_riskgate.domain.documents import BundleError
from phylactery_riskgate.notices.config import Notices, Sink, read_notices, schema
from phylactery_riskgate.notices.delivery import line_for, send
from phylactery_riskgate.notices.model import Event
from phylactery_riskgate.notices.sending import SinkError
from phylactery_riskgate.notices.signing import written
from phylactery_riskgate.notices.status import HEALTHY, SinkStatus, status_of
from phylactery_riskgate.notices.wording import Told, time_text
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import notices as rows
from phylactery_riskgate.store.notices import Counts

app = typer.Typer(no_args_is_help=True, help="Notices: check, test, status, resume.")

File = Annotated[Path | None, typer.Option("--file", help="the file of sinks (RISKGATE_NOTICES)")]
SinkName = Annotated[str, typer.Argument(metavar="SINK", help="the sink's name")]
Asked = Annotated[str, typer.Option("--target", help="ask the RiskGate there, as host:port; none: use its database")]
_KEY_BYTES = 32


@app.command("check")
def notices_check(file: File = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Check the file of sinks and the secrets that it names. Exit code 1: it is wrong."""
    path = _path(settings_of(data_dir=data_dir, notices=file))
    try:
        found = read_notices(path)
    except BundleError as error:
        faults = [{"file": one.file, "line": one.line, "message": one.message} for one in error.all]
        tell(as_json, {"ok": False, "faults": faults}, "\n".join(str(one) for one in error.all))
        raise typer.Exit(FAILED) from None
    sinks = [{"name": one.name, "kind": one.kind, "place": one.place} for one in found.sinks]
    lines = [f"{one['name']}: {one['kind']}, {one['place']}" for one in sinks]
    tell(
        as_json,
        {"ok": True, "sinks": sinks},
        "\n".join((*lines, f"{path}: {len(sinks)} {'sink' if len(sinks) == 1 else 'sinks'} can be used")),
    )


@app.command("test")
def notices_test(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SINK]…", help="which; none: all of them")] = None,
    file: File = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Send a test notice to sinks, from here and at once. Exit code 1: one did not take it."""
    told = Told(new_id("nt"), Event.TEST, time.time_ns() // 1_000, {"tenant": "test"})
    results = []
    for sink in _chosen(_notices(settings_of(data_dir=data_dir, notices=file)), names or []):
        result: dict[str, Any] = {"sink": sink.name, "place": sink.place, "ok": True}
        try:
            send(sink, told, told.time_us, line_for(sink))
        except SinkError as error:
            result |= {"ok": False, "code": error.code, "message": error.told}
        results.append(result)
    lines = [
        f"{one['sink']}: it took the notice" if one["ok"] else f"{one['sink']}: {one['message']} ({one['code']})"
        for one in results
    ]
    tell(as_json, {"ok": all(one["ok"] for one in results), "id": told.id, "sinks": results}, "\n".join(lines))
    if not all(one["ok"] for one in results):
        raise typer.Exit(FAILED)


@app.command("status")
def notices_status(
    file: File = None,
    data_dir: DataDir = None,
    target: Asked = "",
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Show, for each sink, what waits, what was sent in a week, and why it takes nothing. Exit code 1: one does not.

    With --target a running RiskGate is asked; otherwise its database is read, which needs its files.
    """
    now_us = time.time_ns() // 1_000
    if target:
        with connect(target, token_file, as_json=as_json) as remote:
            stub = control_pb2_grpc.ControlServiceStub(remote.channel)
            facts = [_answered(one) for one in remote.ask(stub.ListSinks, control_pb2.ListSinksRequest()).sinks]
    else:
        settings = settings_of(data_dir=data_dir, notices=file)
        with open_database(settings) as database:
            notices = _notices(settings)
            found = database.read_sync(lambda connection: status_of(connection, notices, now_us))
        facts = [_read(one) for one in found]
    lines = [_line(one, now_us) for one in facts]
    healthy = all(one["state"] in HEALTHY for one in facts)
    tell(as_json, {"ok": healthy, "sinks": facts}, "\n".join(lines) or "no sink is configured")
    if not healthy:
        raise typer.Exit(FAILED)


@app.command("resume")
def notices_resume(
    name: SinkName, data_dir: DataDir = None, target: Asked = "", token_file: TokenFile = None, as_json: AsJson = False
) -> None:
    """Enable a sink that said that it is gone, and try at once what waits for it.

    With --target a running RiskGate does it; otherwise its database is written, which needs its files.
    """
    if target:
        with connect(target, token_file, as_json=as_json) as remote:
            stub = control_pb2_grpc.ControlServiceStub(remote.channel)
            remote.ask(stub.ResumeSink, control_pb2.ResumeSinkRequest(sink=name))
    else:
        with open_database(settings_of(data_dir=data_dir)) as database:
            known = database.write_sync(lambda connection: rows.resume_sink(connection, name))
        if not known:
            raise unusable(f"no notice was ever sent to a sink '{name}'; see riskgate notices status")
    tell(as_json, {"ok": True, "sink": name}, f"{name}: what waits for it is sent now")


@app.command("secret")
def notices_secret() -> None:
    """Print a new secret for a webhook; put it into the file that secret_file names, with mode 600."""
    typer.echo(written(secrets.token_bytes(_KEY_BYTES)))


@app.command("schema")
def notices_schema() -> None:
    """Print the JSON Schema of notices.yaml, for editors."""
    typer.echo(json.dumps(schema(), indent=2, sort_keys=True))


def _path(settings: RiskGateSettings) -> Path:
    if settings.notices_file is None:
        raise unusable("no file of sinks; write notices.yaml into the data folder, or name one with --file")
    return settings.notices_file


def _notices(settings: RiskGateSettings) -> Notices:
    try:
        return read_notices(_path(settings))
    except BundleError as error:
        raise unusable("; ".join(str(one) for one in error.all)) from None


def _chosen(notices: Notices, names: list[str]) -> list[Sink]:
    wrong = [name for name in names if name not in notices.by_name]
    if wrong:
        raise unusable(f"no sink '{wrong[0]}'; there are {', '.join(notices.by_name) or 'none'}")
    if not notices.sinks:
        warn("no sink is configured")
    return [sink for sink in notices.sinks if not names or sink.name in names]


def _read(one: SinkStatus) -> dict[str, Any]:
    return {
        "sink": one.name,
        "kind": one.kind,
        "place": one.place,
        "state": one.state,
        "waiting": one.counts.waiting,
        "oldest": _time(one.counts.oldest_us),
        "sent": one.counts.sent,
        "given_up": one.counts.failed,
        "dropped": one.counts.dropped,
        "last_taken": _time(one.taken_us),
        "failing_since": _time(one.failing_us),
        "code": one.code,
        "message": one.message,
    }


def _answered(one: control_pb2.NoticeSink) -> dict[str, Any]:
    counts = Counts(one.waiting, _us(one.oldest_time), one.sent, one.given_up, one.dropped)
    state = control_pb2.SinkState.Name(one.state).removeprefix("SINK_STATE_").lower().replace("_", " ")
    times = _us(one.taken_time), _us(one.failing_since)
    return _read(SinkStatus(one.name, one.kind, one.place, state, counts, *times, one.error_code, one.message))


def _us(time: Timestamp) -> int:
    return time.ToMicroseconds()


def _time(time_us: int) -> str:
    return time_text(time_us) if time_us else ""


_TOLD = {
    "disabled": "it said that it is gone; mend it, then: riskgate notices resume {sink}",
    "not configured": "the file has no such sink, so what waits is not sent: put it back, or it is dropped after a day",
    "changed": "its settings changed; restart RiskGate to use them",
}


def _line(one: dict[str, Any], now_us: int) -> str:
    head = f"{one['sink']}: {one['state']}" + (f", {one['kind']}, {one['place']}" if one["kind"] else "")
    numbers = f"  {one['waiting']} waiting, {one['sent']} sent and {one['given_up']} given up in 7 days"
    if one["oldest"]:
        numbers += f"; the oldest waits since {one['oldest']} (now {time_text(now_us // MICROSECONDS * MICROSECONDS)})"
    if one["dropped"]:
        numbers += f"; {one['dropped']} dropped, as no sink of the file had this name"
    why = [f"  since {one['failing_since']}: {one['message']} ({one['code']})"] if one["code"] else []
    why += [f"  {_TOLD[one['state']].format(**one)}"] if one["state"] in _TOLD else []
    return "\n".join((head, numbers, *why))
