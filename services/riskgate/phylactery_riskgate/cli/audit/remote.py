"""`riskgate audit list|tail|checkpoint|proof|erase`: what a running RiskGate shows of its logs."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import audit_pb2, audit_pb2_grpc, types_pb2

from phylactery_riskgate.audit.checkpoint import Checkpoint, NoteError, Verifier, open_note
from phylactery_riskgate.audit.export import write_export
from phylactery_riskgate.audit.merkle import verify_consistency, verify_inclusion
from phylactery_riskgate.cli.common import FAILED, UNPROVEN, AsJson, tell, unusable
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Remote, RemoteError, Target, TokenFile, connect
from phylactery_riskgate.domain.views.visible import make_visible

_PAGE = 200
_AGAIN_SECONDS = 1.0
_CELL = 60
_NO_KEY = (
    "the hashes lead to a signed head with an unverified signature; pass a trusted key with --key: "
    "`riskgate keys list` on RiskGate's machine prints it"
)
_WHAT = ("tool", "approval_id", "execution_id", "slot", "kid", "source")
_RESULT = ("decision", "outcome", "state", "reason", "bundle_revision")
"""What of a record a line of the table shows: the first that is there."""
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}

Positions = dict[str, int]
"""Of each log the index of the next entry."""

Log = Annotated[str, typer.Option("--log", help="one log; none is all of them")]
OneLog = Annotated[str, typer.Option("--log", help="the log; default is that of the responding process")]
Kind = Annotated[str, typer.Option("--kind", help="such as decision, redeemed, approval_answered")]
Subject = Annotated[str, typer.Option("--subject", help="entries about this user")]
Run = Annotated[str, typer.Option("--run", help="entries of this run")]
Thread = Annotated[str, typer.Option("--thread", help="entries of this thread")]
Tool = Annotated[str, typer.Option("--tool", help="entries about this tool")]
Decision = Annotated[str, typer.Option("--decision", help="ALLOW, AUTH_REQUIRED or BLOCKED")]
Since = Annotated[str, typer.Option("--since", help="from then on: 90s, 15m, 2h, 7d ago, or 2026-01-31T12:00")]
Until = Annotated[str, typer.Option("--until", help="before then; the same forms")]
Values = Annotated[bool, typer.Option("--values", help="with the argument values, sensitive ones excepted")]
Key = Annotated[str, typer.Option("--key", help="the trusted vkey: `riskgate keys list` prints it")]


def list_entries(
    *,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    log: Log = "",
    kind: Kind = "",
    subject: Subject = "",
    run: Run = "",
    thread: Thread = "",
    tool: Tool = "",
    decision: Decision = "",
    since: Since = "",
    until: Until = "",
    values: Values = False,
    oldest_first: Annotated[bool, typer.Option("--oldest-first", help="the oldest first")] = False,
    limit: Annotated[int, typer.Option("--limit", min=0, help="so many at most; 0 is all")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """List your tenant's entries of all logs, newest first."""
    wanted = _filter(
        log=log,
        kind=kind,
        subject=subject,
        run=run,
        thread=thread,
        tool=tool,
        decision=decision,
        since=since,
        until=until,
    )
    request = audit_pb2.ListEntriesRequest(filter=wanted, include_values=values, oldest_first=oldest_first)
    with connect(target, token_file, as_json=as_json) as remote:
        for count, entry in enumerate(_pages(remote, request, limit), 1):
            _print_entry(entry, as_json=as_json, first=count == 1)
            if count == limit:
                return


def tail(
    *,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    log: Log = "",
    kind: Kind = "",
    subject: Subject = "",
    run: Run = "",
    thread: Thread = "",
    tool: Tool = "",
    decision: Decision = "",
    values: Values = False,
    from_beginning: Annotated[bool, typer.Option("--from-beginning", help="send existing entries first")] = False,
    count: Annotated[int, typer.Option("--count", min=0, help="stop after this many entries; 0 means never")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="one JSON object a line")] = False,
) -> None:
    """Follow your tenant's entries as they come, over restarts of the server, until you stop it."""
    wanted = _filter(
        log=log, kind=kind, subject=subject, run=run, thread=thread, tool=tool, decision=decision, since="", until=""
    )
    with connect(target, token_file, as_json=as_json) as remote:
        for number, entry in enumerate(follow(remote, wanted, values=values, from_beginning=from_beginning), 1):
            _print_entry(entry, as_json=as_json, first=number == 1)
            if number == count:
                return


def export(
    target: str, token_file: Path | None, out: Path, names: Sequence[str], *, values: bool, as_json: bool
) -> None:
    """Write an export of the logs of a running RiskGate to a file, whole or not at all."""
    done: list[str] = []
    with connect(target, token_file, as_json=as_json) as remote:
        logs = names or [one.name for one in remote.ask(_stub(remote).ListLogs, audit_pb2.ListLogsRequest()).logs]

        def lines() -> Iterator[bytes]:
            for name in logs:
                request = audit_pb2.ExportLogRequest(log=name, include_values=values)
                parts = (one.data for one in remote.stream(_stub(remote).ExportLog, request))
                yield from _lines_of(parts)
                done.append(name)

        count = write_export(out, lines())
    what = f"log '{done[0]}'" if len(done) == 1 else f"{len(done)} logs"
    facts = {"entries": count, "file": str(out), "logs": done, "problems": []}
    tell(as_json, facts, f"{count} entries of {what} in {out}, those of your tenant; of others the hash alone")


def _lines_of(parts: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the lines that parts of a file make."""
    rest = b""
    for part in parts:
        *whole, rest = (rest + part).split(b"\n")
        yield from (line + b"\n" for line in whole)


def checkpoint(
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    log: OneLog = "",
    as_json: AsJson = False,
) -> None:
    """Print the signed head of a log. Keep it: `audit verify --checkpoint` shows later that nothing before it went."""
    with connect(target, token_file, as_json=as_json) as remote:
        answer = remote.ask(_stub(remote).GetCheckpoint, audit_pb2.GetCheckpointRequest(log=log))
    facts = {"log": answer.log, "size": answer.size, "root": answer.root_hash.hex(), "note": answer.note}
    tell(as_json, facts, answer.note.removesuffix("\n"))


def proof(
    *,
    index: Annotated[int | None, typer.Option("--index", min=0, help="prove that this entry is in the log")] = None,
    first: Annotated[
        int | None, typer.Option("--from", min=1, help="prove that the log of this size is the beginning of it now")
    ] = None,
    size: Annotated[int, typer.Option("--size", min=0, help="in the tree of this size; 0 is the current one")] = 0,
    log: OneLog = "",
    key: Key = "",
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a proof and check it here. Exit code 1: it does not hold, or --key did not sign the head it leads to.

    Exit code 3: the hashes are valid, but without --key the signature of the head is not verified; nothing is proved.
    """
    if (index is None) == (first is None):
        raise unusable("name --index for an entry, or --from for an earlier size: one of the two")
    with connect(target, token_file, as_json=as_json) as remote:
        if index is not None:
            asked = audit_pb2.GetInclusionProofRequest(log=log, index=index, tree_size=size)
            facts = _checked_inclusion(remote.ask(_stub(remote).GetInclusionProof, asked), key)
        else:
            grown = audit_pb2.GetConsistencyProofRequest(log=log, first_size=first or 0, second_size=size)
            facts = _checked_consistency(remote.ask(_stub(remote).GetConsistencyProof, grown), key)
    facts |= {"ok": facts["whole"] and bool(key), "key_trusted": bool(key)}
    if not facts["whole"]:
        tell(as_json, facts, f"NOT PROVED: {facts['problem']}")
        raise typer.Exit(FAILED)
    if not key:
        tell(as_json, facts, f"NOT PROVED: {_NO_KEY}")
        raise typer.Exit(UNPROVEN)
    tell(as_json, facts, f"proved: {facts['statement']}, with the key given")


def erase(
    *,
    reason: Annotated[str, typer.Option("--reason", help="why; it is recorded")],
    entry: Annotated[list[str] | None, typer.Option("--entry", help="LOG:INDEX; again for several")] = None,
    log: Log = "",
    subject: Subject = "",
    run: Run = "",
    thread: Thread = "",
    tool: Tool = "",
    since: Since = "",
    until: Until = "",
    yes: Annotated[bool, typer.Option("--yes", help="do not ask again")] = False,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Erase argument values for ever; the records stay, and the log still verifies. Needs the role operator."""
    request = audit_pb2.EraseValuesRequest(reason=reason, entries=[reference(one) for one in entry or ()])
    wanted = _filter(
        log=log, kind="", subject=subject, run=run, thread=thread, tool=tool, decision="", since=since, until=until
    )
    if wanted != audit_pb2.EntryFilter():
        request.filter.CopyFrom(wanted)
    if not yes and not typer.confirm("Erase these values permanently?", err=True):
        raise typer.Exit(FAILED)
    with connect(target, token_file, as_json=as_json) as remote:
        answer = remote.ask(_stub(remote).EraseValues, request, seconds=600)
    kept = f"; {answer.kept_open} keep them, because their approval is still open" if answer.kept_open else ""
    tell(as_json, {"erased": answer.erased, "kept_open": answer.kept_open}, f"{answer.erased} erased{kept}")


def _stub(remote: Remote) -> audit_pb2_grpc.AuditServiceStub:
    return audit_pb2_grpc.AuditServiceStub(remote.channel)


def _pages(remote: Remote, request: audit_pb2.ListEntriesRequest, limit: int) -> Iterator[audit_pb2.AuditEntry]:
    request.page_size = min(limit, _PAGE) or _PAGE
    while True:
        answer = remote.ask(_stub(remote).ListEntries, request)
        yield from answer.entries
        request.page_token = answer.next_page_token
        if not request.page_token:
            return


def follow(
    remote: Remote,
    wanted: audit_pb2.EntryFilter,
    *,
    values: bool,
    from_beginning: bool,
    at: Positions | None = None,
) -> Iterator[audit_pb2.AuditEntry]:
    """Yield entries indefinitely, reconnecting and resuming after the server was unavailable.

    ``at`` says where to begin and, with each entry, how far the logs are.
    """
    at = {} if at is None else at
    while True:
        request = audit_pb2.TailEntriesRequest(
            filter=wanted,
            include_values=values,
            positions=[audit_pb2.LogPosition(log=name, next_index=index) for name, index in at.items()],
            from_beginning=from_beginning and not at,
        )
        try:
            for message in remote.stream(_stub(remote).TailEntries, request):
                if message.HasField("entry"):
                    at[message.entry.log] = message.entry.index + 1
                    yield message.entry
                else:
                    at.update({one.log: one.next_index for one in message.positions})
        except RemoteError as error:
            if error.code != "UNAVAILABLE" or not at:
                raise
        time.sleep(_AGAIN_SECONDS)


def positions_now(remote: Remote) -> Positions:
    """Return how long the logs are now."""
    for message in remote.stream(_stub(remote).TailEntries, audit_pb2.TailEntriesRequest()):
        return {one.log: one.next_index for one in message.positions}
    return {}


def entry_filter(*, log: str, kind: str, tool: str) -> audit_pb2.EntryFilter:
    """Return the filter of a stream."""
    return audit_pb2.EntryFilter(log=log, kind=kind, tool=tool)


def _filter(
    *, log: str, kind: str, subject: str, run: str, thread: str, tool: str, decision: str, since: str, until: str
) -> audit_pb2.EntryFilter:
    wanted = audit_pb2.EntryFilter(log=log, kind=kind, subject=subject, run_id=run, thread_id=thread, tool=tool)
    if decision:
        try:
            wanted.decision = types_pb2.Decision.Value(f"DECISION_{decision.upper()}")
        except ValueError:
            raise unusable("--decision is ALLOW, AUTH_REQUIRED or BLOCKED") from None
    for given, field in ((since, wanted.start_time), (until, wanted.end_time)):
        if given:
            field.FromDatetime(moment_of(given))
    return wanted


def moment_of(given: str) -> datetime:
    """Return the time an option means."""
    span = _SPAN.fullmatch(given)
    if span:
        return datetime.now(UTC) - timedelta(**{_UNITS[span[2]]: int(span[1])})
    try:
        moment = datetime.fromisoformat(given)
    except ValueError:
        raise unusable(f"{given}: no time; write 90s, 15m, 2h or 7d, or 2026-01-31T12:00") from None
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)


def reference(given: str) -> audit_pb2.EntryReference:
    """Return the entry that an option means. End the command where it means none."""
    name, _, index = given.rpartition(":")
    if not name or not index.isascii() or not index.isdigit():
        raise unusable(f"{given}: an entry is LOG:INDEX, such as riskgate:12")
    return audit_pb2.EntryReference(log=name, index=int(index))


def _print_entry(entry: audit_pb2.AuditEntry, *, as_json: bool, first: bool) -> None:
    record = _record(entry)
    if as_json:
        values = [
            {"path": one.path, "withheld": one.withheld}
            | ({} if one.withheld else {"value": json.loads(one.value_json), "salt": one.salt.hex()})
            for one in entry.values
        ]
        typer.echo(
            json.dumps(entry_facts(entry) | {"values": values, "values_erased": entry.values_erased}, sort_keys=True)
        )
        return
    if first:
        typer.echo(_row("time", "log:index", "kind", "subject", "what", "result"))
    what = next((record[name] for name in _WHAT if record.get(name)), "")
    result = _result(record)
    if entry.HasField("revoke_time"):
        result = f"REVOKED, was {result}"
    moment = f"{entry.create_time.ToDatetime():%Y-%m-%d %H:%M:%S}"
    subject = str(record.get("subject", ""))
    typer.echo(_row(moment, f"{entry.log}:{entry.index}", entry.kind, subject, str(what), str(result)))
    for one in entry.values:
        typer.echo(f"    {_safe(one.path)}  {'«withheld»' if one.withheld else _safe(one.value_json)}")
    if entry.values_erased:
        typer.echo("    values erased")


def _result(record: dict[str, Any]) -> str:
    """Return the result of an entry, with the decision of the shadow bundle if it differs."""
    result = str(next((record[name] for name in _RESULT if record.get(name)), ""))
    if not record.get("shadow_decision"):
        return result
    asked = (("decision", "approval_class"), ("shadow_decision", "shadow_approval_class"))
    live, shadow = (" ".join(str(record[name]) for name in names if record.get(name)) for names in asked)
    policies = ", ".join(str(one) for one in record.get("shadow_policy_ids") or ())
    return f"{live}; shadow {record.get('shadow_revision')}: {shadow}" + (f" ({policies})" if policies else "")


def entry_facts(entry: audit_pb2.AuditEntry) -> dict[str, Any]:
    """Return an entry as one line of JSON, without values."""
    place = {"log": entry.log, "index": entry.index, "leaf_hash": entry.leaf_hash.hex()}
    revoked = {"revoke_time": entry.revoke_time.ToJsonString()} if entry.HasField("revoke_time") else {}
    return place | revoked | {"record": _record(entry)}


def _record(entry: audit_pb2.AuditEntry) -> dict[str, Any]:
    try:
        record = json.loads(entry.record_json)
    except (ValueError, RecursionError):
        return {}
    return record if isinstance(record, dict) else {}


def _row(*cells: str) -> str:
    widths = (19, 24, 17, 16, 28)
    padded = [_safe(cell).ljust(width) for cell, width in zip(cells[:-1], widths, strict=True)]
    return "  ".join([*padded, _safe(cells[-1])]).rstrip()


def _safe(text: str) -> str:
    return make_visible(text, _CELL).text


def _checked_inclusion(answer: audit_pb2.GetInclusionProofResponse, key: str) -> dict[str, Any]:
    problem, head = _head(answer.checkpoint, answer.tree_size, key)
    if head and not verify_inclusion(answer.leaf_hash, answer.index, head.size, list(answer.hashes), head.root):
        problem = "the hashes do not lead from the entry to the head"
    statement = f"entry {answer.index} is in the log '{answer.log}' of {answer.tree_size} entries"
    facts = {"index": answer.index, "size": answer.tree_size, "leaf_hash": answer.leaf_hash.hex()}
    return facts | _told(answer.log, answer.hashes, [answer.checkpoint], problem, statement)


def _checked_consistency(answer: audit_pb2.GetConsistencyProofResponse, key: str) -> dict[str, Any]:
    problem, new = _head(answer.second_checkpoint, answer.second_size, key)
    older, old = _head(answer.first_checkpoint, answer.first_size, key)
    problem = problem or older
    if old and new and not verify_consistency(old.size, new.size, list(answer.hashes), old.root, new.root):
        problem = "the hashes do not lead from the earlier head to the later one"
    statement = f"the log '{answer.log}' of {answer.second_size} entries begins with that of {answer.first_size}"
    facts = {"first_size": answer.first_size, "size": answer.second_size}
    notes = [answer.first_checkpoint, answer.second_checkpoint]
    return facts | _told(answer.log, answer.hashes, notes, problem, statement)


def _told(log: str, hashes: Any, notes: list[str], problem: str, statement: str) -> dict[str, Any]:
    return {
        "whole": not problem,
        "log": log,
        "hashes": [one.hex() for one in hashes],
        "checkpoints": notes,
        "problem": problem,
        "statement": statement,
    }


def _head(note: str, size: int, key: str) -> tuple[str, Checkpoint | None]:
    """Return the problem of a signed head, and the head if it can be used."""
    if not note:
        return f"no head was signed at size {size}; ask for a size of `riskgate audit checkpoint`", None
    try:
        if key:
            open_note(note, [Verifier.parse(key)])
        head = Checkpoint.parse(note.partition("\n\n")[0] + "\n")
    except NoteError as error:
        return f"the signed head cannot be trusted: {error}", None
    return ("", head) if head.size == size else ("the signed head is of another size", None)
