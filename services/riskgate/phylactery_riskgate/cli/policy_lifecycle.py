"""`riskgate policy`: signs, activates, shows, rolls back and replays bundles."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery.riskgate.v1 import policy_pb2, policy_pb2_grpc, types_pb2
from phylactery_chassis.auth.jws import decode
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.log import AuditLog
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.bundles.signing import (
    PolicyKeyError,
    create_key,
    load_private_key,
    sign_bundle,
    vkey_of,
    write_signature,
)
from phylactery_riskgate.cli.common import FAILED, AsJson, DataDir, keys_of, open_database, settings_of, tell, unusable
from phylactery_riskgate.cli.policy import BundleFolder, accepted, app
from phylactery_riskgate.cli.remote import DEFAULT_TARGET, Remote, Target, TokenFile, connect
from phylactery_riskgate.decisions.replay import DEFAULT_DECISIONS, MAX_DECISIONS, Flip, Replay, Summary, replay_all
from phylactery_riskgate.domain.bundle.bundle import Bundle
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.bundle.files import SIGNATURE_FILE
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.store.decisions import tenants_with_decisions

__all__ = ["app"]

_SINCE = re.compile(r"(\d{1,6})([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
_EXAMPLES = 10
_LONG = 600.0
_SOURCES = {
    policy_pb2.BUNDLE_SOURCE_FOLDER: "folder",
    policy_pb2.BUNDLE_SOURCE_ACTIVATION: "activation",
    policy_pb2.BUNDLE_SOURCE_ROLLBACK: "rollback",
}


@app.command("keygen")
def policy_keygen(
    out: Annotated[Path, typer.Option("--out", help="file for the private key; the public one is written as FILE.pub")],
    as_json: AsJson = False,
) -> None:
    """Make a key that signs bundles. Name the public one in RISKGATE_POLICY_KEYS where bundles must be signed."""
    try:
        public = create_key(out)
    except PolicyKeyError as error:
        raise unusable(str(error)) from None
    vkey = vkey_of(decode(public["x"]))
    facts = {"private": str(out), "public": f"{out}.pub", "kid": public["kid"], "vkey": vkey}
    tell(as_json, facts, f"{public['kid']}\nprivate key in {out}, public key in {out}.pub\n{vkey}")


@app.command("sign")
def policy_sign(
    folder: BundleFolder,
    key: Annotated[Path, typer.Option("--key", help="the private key, as JWK or PEM")],
    as_json: AsJson = False,
) -> None:
    """Sign a bundle: writes bundle.sig over its files and revision. Exit code 1: the bundle is not accepted."""
    bundle = accepted(folder, as_json=as_json)
    try:
        write_signature(folder, sign_bundle(bundle.files, bundle.revision, load_private_key(key)))
    except PolicyKeyError as error:
        raise unusable(str(error)) from None
    except OSError as error:
        raise unusable(f"{folder / SIGNATURE_FILE}: cannot be written ({error.strerror})") from None
    facts = {"file": str(folder / SIGNATURE_FILE), "revision": bundle.revision, "hash": bundle.hash}
    tell(as_json, facts, f"signed revision {bundle.revision}, {bundle.hash}, in {folder / SIGNATURE_FILE}")


@app.command("activate")
def policy_activate(  # noqa: PLR0917 - typer's options
    folder: Annotated[Path | None, typer.Argument(metavar="[DIR]", help="the bundle's folder")] = None,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    shadow: Annotated[
        bool, typer.Option("--shadow", help="evaluate only, and report differences; without DIR end shadow mode")
    ] = False,
    skip_tests: Annotated[bool, typer.Option("--skip-tests", help="activate it even if its own cases fail")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="return once no replica uses the previous bundle")] = False,
    as_json: AsJson = False,
) -> None:
    """Activate a bundle, in every replica within about a second. Exit code 1: it was refused, here or by RiskGate."""
    if folder is None and not shadow:
        raise unusable("name the folder of the bundle; only --shadow goes without one, and ends the shadow")
    request = policy_pb2.ActivateBundleRequest(shadow=shadow, skip_cases=skip_tests)
    if folder is not None:
        bundle = accepted(folder, as_json=as_json)
        failed = [] if skip_tests else [one.name for one in run_bundle_tests(bundle) if not one.passed]
        if failed:
            facts = {"ok": False, "failed_cases": failed}
            tell(as_json, facts, f"NOT ACTIVATED: {len(failed)} of its own cases fail; see riskgate policy test")
            raise typer.Exit(FAILED)
        request.files.extend(_files(bundle))
    with connect(target, token_file, as_json=as_json) as remote:
        done = remote.ask(_stub(remote).ActivateBundle, request)
    info, seconds = done.bundle, done.follow_within.ToTimedelta().total_seconds()
    if wait:
        time.sleep(seconds)
    facts = {"ok": True, "already_active": done.already_active, "shadow": shadow, **_info(info)}
    facts["follow_within_seconds"] = 0.0 if wait else seconds
    where = "in the shadow" if shadow else "live"
    active = f"revision {info.revision} is {where}{' already' if done.already_active else ''}: {info.hash}"
    if not (shadow or wait):
        active += f"\nother replicas follow within {seconds:g} s, and at once on min_bundle_revision {info.revision}"
    tell(as_json, facts, active if info.revision else "no bundle decides in the shadow")


@app.command("rollback")
def policy_rollback(
    to: Annotated[str, typer.Option("--to", help="the bundle's hash; none is the one before the active one")] = "",
    wait: Annotated[bool, typer.Option("--wait", help="return once no replica uses the previous bundle")] = False,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Let a bundle that decided before decide again, as it was. Exit code 1: RiskGate refused."""
    with connect(target, token_file, as_json=as_json) as remote:
        done = remote.ask(_stub(remote).RollbackBundle, policy_pb2.RollbackBundleRequest(hash=to))
    info, seconds = done.bundle, done.follow_within.ToTimedelta().total_seconds()
    if wait:
        time.sleep(seconds)
    facts = {"ok": True, "already_active": done.already_active, **_info(info)}
    facts["follow_within_seconds"] = 0.0 if wait else seconds
    told = f"revision {info.revision} is live{' already' if done.already_active else ' again'}: {info.hash}"
    if not wait:
        told += f"\nother replicas follow within {seconds:g} s"
    tell(as_json, facts, told)


@app.command("history")
def policy_history(
    limit: Annotated[int, typer.Option(min=1, max=500, help="how many, newest first")] = 50,
    target: Target = DEFAULT_TARGET,
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """List the activations with time and subject, newest first."""
    with connect(target, token_file, as_json=as_json) as remote:
        found = remote.ask(_stub(remote).ListActivations, policy_pb2.ListActivationsRequest(limit=limit)).activations
    facts = {
        "activations": [
            _info(one.bundle)
            | {"slot": "shadow" if one.shadow else "live", "activated_by_tenant": one.activated_by_tenant}
            for one in found
        ]
    }
    tell(as_json, facts, "\n".join(map(_moved, found)) or "no bundle was ever activated")


@app.command("show")
def policy_show(target: Target = DEFAULT_TARGET, token_file: TokenFile = None, as_json: AsJson = False) -> None:
    """Show the bundle that decides, the one in its shadow, and the last one that was refused."""
    with connect(target, token_file, as_json=as_json) as remote:
        seen = remote.ask(_stub(remote).GetBundle, policy_pb2.GetBundleRequest())
    facts: dict[str, Any] = {"live": _info(seen.live)}
    lines = [_told("live", seen.live)]
    if seen.HasField("shadow"):
        counts = {
            "decisions": seen.shadow_decisions,
            "differences": seen.shadow_differences,
            "skipped": seen.shadow_skipped,
        }
        facts["shadow"] = _info(seen.shadow) | counts
        lines.append(_told("shadow", seen.shadow))
        lines.append("        " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    if seen.HasField("last_fault"):
        fault = seen.last_fault
        at = fault.fault_time.ToJsonString()
        facts["last_fault"] = {"message": fault.message, "time": at, "revision": fault.revision}
        lines.append(f"refused {at}: {fault.message}")
    tell(as_json, facts, "\n".join(lines))


@app.command("replay")
def policy_replay(  # noqa: PLR0917 - typer's options
    bundle: Annotated[Path, typer.Option("--bundle", help="folder of the bundle to try")],
    since: Annotated[str, typer.Option("--since", help="how far back: 90s, 15m, 24h, 7d, 4w, or all")] = "7d",
    limit: Annotated[
        int, typer.Option(min=1, max=MAX_DECISIONS, help="decisions to replay at most, newest first")
    ] = DEFAULT_DECISIONS,
    tenant: Annotated[str, typer.Option("--tenant", help="one tenant alone; with --data-dir")] = "",
    target: Annotated[
        str, typer.Option("--target", help="a running RiskGate, as host:port; else the data folder")
    ] = "",
    token_file: TokenFile = None,
    data_dir: DataDir = None,
    fail_on_flips: Annotated[bool, typer.Option("--fail-on-flips", help="exit with 1 where a call flips")] = False,
    fail_on_widening: Annotated[
        bool, typer.Option("--fail-on-widening", help="exit with 1 where a call comes closer to running")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Replay recorded calls with another bundle and report changed decisions. Nothing is recorded.

    Read the data folder, where all tenants are replayed, or with --target asks a running RiskGate, which replays the
    tenant of your token.
    """
    tried = accepted(bundle, as_json=as_json)
    since_us = _since_us(since)
    if target:
        with connect(target, token_file, as_json=as_json) as remote:
            flips, summary = _replay_remotely(remote, tried, since_us, limit)
    else:
        flips, summary = _replay_here(tried, data_dir, tenant, since_us, limit)
    _tell_replay(flips, summary, as_json=as_json)
    if flips and (fail_on_flips or (fail_on_widening and any(one.widens for one in flips))):
        raise typer.Exit(FAILED)


def _replay_here(
    tried: Bundle, data_dir: Path | None, tenant: str, since_us: int, limit: int
) -> tuple[list[Flip], Summary]:
    replay = Replay(DecisionEngine(tried))
    with _log_of(data_dir) as (connection, audit):
        tenants = [tenant] if tenant else tenants_with_decisions(connection)
        flips = [
            flip
            for each in tenants
            for flip in replay_all(connection, audit, each, replay, since_us=since_us, limit=limit)
        ]
    return flips, replay.summary


@contextmanager
def _log_of(data_dir: Path | None) -> Iterator[tuple[Connection, AuditLog]]:
    """Open the audit log of a data folder for reading."""
    settings = settings_of(data_dir=data_dir)
    with open_database(settings) as database:
        ring = keys_of(settings)
        audit = AuditLog(
            settings.log_name, vault=Vault(ring.data_key), data_key_id=ring.data_key_id, signer=lambda: ring.signer
        )
        with database.engine.connect() as connection:
            yield connection, audit


def _replay_remotely(remote: Remote, tried: Bundle, since_us: int, limit: int) -> tuple[list[Flip], Summary]:
    request = policy_pb2.ReplayBundleRequest(files=_files(tried), limit=limit)
    if since_us:
        request.since_time.FromMicroseconds(since_us)
    flips: list[Flip] = []
    summary = Summary(tried.revision)
    for one in remote.stream(_stub(remote).ReplayBundle, request, seconds=_LONG):
        if one.HasField("flip"):
            flips.append(_flip(one.flip))
        else:
            told = one.summary
            summary = Summary(told.revision, told.replayed, told.flipped, told.erased, told.unbound, told.frozen)
            for count in told.counts:
                summary.changes[_outlook(count.before), _outlook(count.after)] = count.calls
    return flips, summary


def _tell_replay(flips: list[Flip], summary: Summary, *, as_json: bool) -> None:
    facts = {
        "revision": summary.revision,
        "replayed": summary.replayed,
        "flipped": summary.flipped,
        "widened": sum(one.widens for one in flips),
        "not_replayable": {"erased": summary.erased, "unbound": summary.unbound, "frozen": summary.frozen},
        "counts": [
            {"before": _word(before), "after": _word(after), "calls": calls}
            for (before, after), calls in summary.changes.most_common()
        ],
        "flips": [
            {
                "decision_id": one.decision_id,
                "tool": one.tool,
                "time": _time(one.time_us),
                "before": _word(one.before),
                "after": _word(one.after),
                "policy_ids": list(one.policy_ids),
                "widens": one.widens,
            }
            for one in flips
        ],
    }
    lines = [
        f"{calls:>7}  {_word(before)} -> {_word(after)}" for (before, after), calls in summary.changes.most_common()
    ]
    for one in flips[:_EXAMPLES]:
        decided = ", ".join(one.policy_ids) or "no policy permits"
        wider = "  WIDENS" if one.widens else ""
        lines.append(
            f"{_time(one.time_us)}  {one.decision_id}  {one.tool}: {_word(one.before)} -> {_word(one.after)}"
            f" ({decided}){wider}"
        )
    if len(flips) > _EXAMPLES:
        lines.append(f"… and {len(flips) - _EXAMPLES} more; --json has all")
    lines.append(
        f"revision {summary.revision}: {summary.flipped} of {summary.replayed} decisions flip; not replayable: "
        f"{summary.erased} erased, {summary.unbound} that were not JSON, {summary.frozen} that were frozen"
    )
    tell(as_json, facts, "\n".join(lines))


def _files(bundle: Bundle) -> Iterable[policy_pb2.BundleFile]:
    for name, text in bundle.files.texts.items():
        yield policy_pb2.BundleFile(name=name, content=text.encode())
    if bundle.files.signature:
        yield policy_pb2.BundleFile(name=SIGNATURE_FILE, content=bundle.files.signature.encode())


def _stub(remote: Remote) -> Any:
    return policy_pb2_grpc.PolicyServiceStub(remote.channel)


def _info(info: policy_pb2.BundleInfo) -> dict[str, Any]:
    return {
        "revision": info.revision,
        "hash": info.hash,
        "source": _SOURCES.get(info.source, ""),
        "activate_time": info.activate_time.ToJsonString(),
        "activated_by": info.activated_by,
        "signed_by": info.signed_by,
    }


def _told(name: str, info: policy_pb2.BundleInfo) -> str:
    signed = f", signed by {info.signed_by}" if info.signed_by else ""
    source = _SOURCES.get(info.source, "")
    at = info.activate_time.ToJsonString()
    return (
        f"{name:<6}  revision {info.revision}  {info.hash}\n        from {source}, {at}, by {info.activated_by}{signed}"
    )


def _moved(one: policy_pb2.Activation) -> str:
    info, slot = one.bundle, "shadow" if one.shadow else "live"
    who = f"{info.activated_by} of {one.activated_by_tenant}" if one.activated_by_tenant else info.activated_by
    what = f"revision {info.revision}  {info.hash}" if info.revision else "none"
    source = f"from {_SOURCES[info.source]}, " if info.source in _SOURCES else ""
    signed = f", signed by {info.signed_by}" if info.signed_by else ""
    return f"{info.activate_time.ToJsonString()}  {slot:<6}  {what}\n  {source}by {who}{signed}"


def _flip(flip: policy_pb2.ReplayFlip) -> Flip:
    return Flip(
        flip.decision_id,
        flip.tool,
        flip.decide_time.ToMicroseconds(),
        _outlook(flip.before),
        _outlook(flip.after),
        tuple(flip.policy_ids),
        flip.widens,
    )


def _outlook(outlook: policy_pb2.Outlook) -> tuple[str, str]:
    return types_pb2.Decision.Name(outlook.decision).removeprefix("DECISION_"), outlook.approval_class


def _word(outlook: tuple[str, str]) -> str:
    decision, approval_class = outlook
    return f"{decision}({approval_class})" if approval_class else decision


def _time(time_us: int) -> str:
    return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="seconds")


def _since_us(text: str) -> int:
    match = _SINCE.fullmatch(text)
    if match is None and text != "all":
        raise unusable(f"--since {text!r} is not a time span: write 90s, 15m, 24h, 7d, 4w, or all")
    if match is None:
        return 0
    return max(0, int((time.time() - int(match[1]) * _SECONDS[match[2]]) * 1_000_000))
