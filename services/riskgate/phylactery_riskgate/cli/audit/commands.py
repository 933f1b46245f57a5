"""`riskgate audit`: the log as a file, checked; what a running RiskGate shows of it is in audit_remote."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from phylactery_chassis.auth.jws import decode, encode, thumbprint
from phylactery_chassis.errors import DomainError
from phylactery_chassis.util.timestamps import to_timestamp
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.checkpoint import Cosigner, NoteError, Verifier, signed_by
from phylactery_riskgate.audit.entries import record_of, shown_values
from phylactery_riskgate.audit.export import Exporter, ExportError, ShownValues, verify_export, write_export
from phylactery_riskgate.audit.heads import HeadsDisagree, HeadStore, KeptHead, of_issuer, read_notes
from phylactery_riskgate.audit.log import AuditLog
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.audit.verify import Adoption, Report, Verification, check_lines
from phylactery_riskgate.cli.audit import heads as audit_heads
from phylactery_riskgate.cli.audit import remote, retain
from phylactery_riskgate.cli.audit import stream as audit_stream
from phylactery_riskgate.cli.audit import witness as audit_witness
from phylactery_riskgate.cli.common import (
    FAILED,
    UNPROVEN,
    AsJson,
    DataDir,
    keys_of,
    open_database,
    settings_of,
    tell,
    unusable,
    warn,
)
from phylactery_riskgate.cli.remote import TokenFile
from phylactery_riskgate.keys.ring import KeyRing, KeyState, PublicKey
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store.audit import Place, StoredEntry

_PUBLIC_KEY_BYTES = 32
_NO_KEPT_HEAD = (
    "truncation or an omitted log can only be detected with heads you kept: use riskgate audit checkpoint, then "
    "--checkpoint"
)
NO_KEY = (
    "the entries match the key in the file itself, which proves nothing about their origin; pass a trusted key with "
    "--key: `riskgate keys export` on RiskGate's machine prints it"
)
T = TypeVar("T")

Log = Annotated[list[str] | None, typer.Option("--log", help="a log's name; again for several; none is all of them")]

app = typer.Typer(no_args_is_help=True, help="The audit log: list, follow, prove, export, check, erase.")
app.command("list")(remote.list_entries)
app.command("tail")(remote.tail)
app.command("stream")(audit_stream.stream)
app.command("checkpoint")(remote.checkpoint)
app.command("proof")(remote.proof)
app.command("erase")(remote.erase)
app.command("witness")(audit_witness.witness)
app.command("heads")(audit_heads.heads)
app.command("adopt")(audit_heads.adopt_logs)
app.command("retain")(retain.retain_before)


@app.command("export")
def audit_export(  # noqa: PLR0917 - typer's options
    out: Annotated[Path, typer.Option("--out", help="the file to write")],
    log: Log = None,
    values: Annotated[
        bool, typer.Option("--values", help="with the argument values, sensitive ones excepted; keep the file safe")
    ] = False,
    data_dir: DataDir = None,
    target: Annotated[
        str, typer.Option("--target", help="ask the RiskGate at host:port, as an auditor, instead of a data folder")
    ] = "",
    token_file: TokenFile = None,
    as_json: AsJson = False,
) -> None:
    """Write the logs, their signed heads and the public keys to a file, also while the service runs.

    From a RiskGate elsewhere it brings the records of your tenant; of every other entry the hash alone is in the file.
    """
    if target:
        if data_dir is not None:
            raise unusable("name a RiskGate with --target, or its data folder with --data-dir: one of the two")
        with _output_faults(out):
            remote.export(target, token_file, out, log or (), values=values, as_json=as_json)
        return
    problems: list[str] = []

    def work(connection: Connection, exporter: Exporter) -> tuple[int, list[str]]:
        count = write_export(out, exporter.lines(connection, log or ()))
        problems.extend(exporter.problems.values())
        return count, log or rows.log_names(connection)

    with _output_faults(out):
        count, names = _over_database(settings_of(data_dir=data_dir), work, values=values)
    what = f"log '{names[0]}'" if len(names) == 1 else f"{len(names)} logs"
    facts = {"entries": count, "file": str(out), "logs": names, "problems": problems}
    tell(as_json, facts, f"{count} entries of {what} in {out}")
    for problem in problems:
        warn(f"exported as it is, without a new signature: {problem}")
    if problems:
        raise typer.Exit(FAILED)


@app.command("verify")
def audit_verify(  # noqa: PLR0917 - typer's options
    file: Annotated[Path | None, typer.Argument(help="an export; none checks the database of the data folder")] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", help="trusted key: a JWK, JWK Set or vkey, or a file that contains it"),
    ] = None,
    checkpoint: Annotated[
        list[Path] | None,
        typer.Option("--checkpoint", help="a signed head you kept, which the log must be consistent with"),
    ] = None,
    witness: Annotated[
        str | None, typer.Option("--witness", help="vkey of a witness that must have cosigned every given head")
    ] = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Check an export offline, or the database of a data folder with the keys and kept heads of this machine.

    Exit code 1: an entry is altered, missing, out of order, foreign or unsigned. Exit code 3: none is, by the key that
    is in the file itself; the author of the file chose that key, so nothing is verified without --key.
    """
    trusted = public_keys(key) if key else None
    given = {path: _kept_notes(path) for path in checkpoint or ()}
    kept = [note for notes in given.values() for note in notes]
    empty = next((f"{path} contains no signed head, so it proves nothing" for path in given if not given[path]), "")
    useless = empty or (_uncosigned(kept, witness) if witness else "")
    if useless:
        tell(as_json, {"ok": False, "problem": useless}, f"NOT VERIFIED: {useless}")
        raise typer.Exit(FAILED)
    problems: dict[str, str] = {}
    if file is not None:
        found = verify_export(file, trusted, kept)
    else:
        settings = settings_of(data_dir=data_dir)
        here = _kept_here(settings)
        gone = "" if here or given else _heads_gone(settings)

        def check(connection: Connection, exporter: Exporter) -> Report:
            # the exporter compared the database with the heads of this machine already, whichever key signed them
            by_trusted = trusted or [key for key in exporter.keys if key.state is not KeyState.REVOKED]
            known = [note for note in here if _signed_by_any(note, by_trusted)]
            kept.extend(known)
            found = check_lines(exporter.lines(connection), trusted or exporter.keys, kept)
            problems.update(exporter.problems)
            return found

        found = _with_problems(_over_database(settings, check, every=True), problems)
        found = replace(found, fault=found.fault or gone)
    heads = {note.partition("\n")[0] for note in kept}
    proven = key is not None or file is None
    facts = _facts(found, heads) | {"ok": found.ok and proven, "whole": found.ok, "key_trusted": proven}
    if found.ok and not proven:
        tell(as_json, facts, f"NOT VERIFIED: {NO_KEY}")
        raise typer.Exit(UNPROVEN)
    adopted = {one.log for log in found.logs for one in log.adopted}
    whole = [f"NOT VERIFIED: {found.fault}"] if found.fault else []
    lines = [
        _verified(one, against_kept=one.origin in heads, adopted=one.origin in adopted)
        if one.ok
        else _not_verified(one, alone=len(found.logs) == 1)
        for one in found.logs
        if proven or not one.ok  # by the key in the file itself, none is
    ]
    tell(as_json, facts, "\n".join([*whole, *lines, *(_adoptions(found) if found.ok else ())]))
    if not found.ok:
        raise typer.Exit(FAILED)
    if not as_json and not heads.issuperset(one.origin for one in found.logs):
        typer.echo(_NO_KEPT_HEAD, err=True)


def _with_problems(found: Report, problems: Mapping[str, str]) -> Report:
    """Return a report in which each log has what is known of its heads on this machine, which says what to do."""
    logs = tuple(replace(one, problem=problems.get(one.origin, one.problem)) for one in found.logs)
    return replace(found, logs=logs)


def _not_verified(one: Verification, *, alone: bool) -> str:
    """Print why a log is not verified."""
    where = "" if one.first_bad is None else f" (first bad entry: {one.first_bad})"
    of = "" if alone else f"log '{one.origin}': "
    return f"NOT VERIFIED: {of}{one.problem}{where}"


def _verified(one: Verification, *, against_kept: bool, adopted: bool) -> str:
    """Print the result of the check; entries after the newest head can only be checked with a head kept elsewhere."""
    to = ", consistent with the given head" if against_kept else " up to the newest signed head there"
    hidden = f"; of {one.hidden} of them, which are others', the hash alone is in the file" if one.hidden else ""
    emptied = f"; {one.emptied} of them were emptied by retention, on record" if one.emptied else ""
    whole = "complete and unaltered since the adoption" if adopted else "complete and unaltered"
    return f"verified: {one.entries} entries of log '{one.origin}', {whole}{to}{hidden}{emptied}"


def _adoptions(found: Report) -> list[str]:
    """Say of each adoption on record what no signature vouches for: adopted entries were signed as they were found."""
    return [
        f"ADOPTED: the first {one.size} entries of log '{one.log}' were adopted unchecked at {_time(one)} (entry "
        f"{one.index} of log '{log.origin}'): that nothing before was altered is the word of who adopted them"
        for log in found.logs
        for one in log.adopted
    ]


def _time(one: Adoption) -> str:
    return to_timestamp(one.time_us).ToJsonString()


def _signed_by_any(note: str, keys: Sequence[PublicKey | Verifier]) -> bool:
    name = note.partition("\n")[0]
    return signed_by(note, [key if isinstance(key, Verifier) else Verifier(name, key.raw) for key in keys])


def _facts(found: Report, heads: set[str]) -> dict[str, Any]:
    """Return a report for a machine; ``heads`` are the logs that a kept head was given of."""
    return {
        "ok": found.ok,
        "against_kept_head": bool(found.logs) and heads.issuperset(one.origin for one in found.logs),
        "log": found.origin,
        "entries": found.entries,
        "problem": found.problem,
        "first_bad_entry": found.first_bad,
        "logs": [
            {
                "log": one.origin,
                "entries": one.entries,
                "problem": one.problem,
                "first_bad_entry": one.first_bad,
                "hidden_entries": one.hidden,
                "emptied_entries": one.emptied,
                "against_kept_head": one.origin in heads,
                "adopted": [
                    {"log": adopted.log, "entries": adopted.size, "time": _time(adopted), "index": adopted.index}
                    for adopted in one.adopted
                ],
            }
            for one in found.logs
        ],
    }


def _over_database(
    settings: RiskGateSettings,
    work: Callable[[Connection, Exporter], T],
    *,
    values: bool = False,
    every: bool = False,
) -> T:
    """Read the service's database, one snapshot of it. End the command where there is none."""
    with open_database(settings) as database:
        ring = keys_of(settings)
        heads = HeadStore(settings.heads_dir, settings.keys_dir)
        shown = _shown(ring) if values else None
        exporter = Exporter(settings.issuer, ring.public, ring.signer, heads, shown, every=every)
        try:
            return database.read_sync(lambda connection: work(connection, exporter))
        except ExportError as error:
            raise unusable(str(error)) from None


def _shown(ring: KeyRing) -> ShownValues:
    """Return what opens the values of an entry for an export: those its own record does not call sensitive."""
    log = AuditLog("", vault=Vault(ring.data_key), data_key_id=ring.data_key_id, signer=lambda: ring.signer)

    def shown(connection: Connection, name: str, entry: StoredEntry) -> dict[str, Any]:
        record = record_of(entry.record)
        opened = log.salted_values(connection, str(record.get("tenant")), Place(name, entry.index))
        found = shown_values(record, opened or {}, {}, on_the_machine=True)
        return {
            one.path: {"value": json.loads(one.value_json), "salt": encode(one.salt)}
            for one in found
            if not one.withheld
        }

    return shown


@contextmanager
def _output_faults(out: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise unusable(f"{out}: cannot be written ({error.strerror})") from None


def _uncosigned(kept: list[str], witness: str) -> str:
    """Return which kept head the witness did not cosign, empty for none."""
    if not kept:
        raise unusable("--witness needs heads you kept: pass them with --checkpoint")
    try:
        cosigner = Cosigner.parse(witness)
    except NoteError as error:
        raise unusable(f"--witness: {error}") from None
    bad = next((note for note in kept if not signed_by(note, [cosigner])), None)
    return "" if bad is None else f"the given head of the log '{bad.partition(chr(10))[0]}' has no cosignature by it"


def _kept_notes(path: Path) -> list[str]:
    """Read a signed head that was kept, or the newest of a file in RiskGate's folder of kept heads."""
    text = read_text(path)
    if not text.startswith("{"):
        return [text] if text.strip() else []
    try:
        return read_notes(text.splitlines())[-1:]
    except ValueError:
        raise unusable(f"{path}: neither a signed head nor a file of heads") from None


def _kept_here(settings: RiskGateSettings) -> list[str]:
    """Return the newest head that is kept of each log on this machine, where it is over anything.

    A process that was killed while it began a log leaves a head of nothing, and no log.
    """
    store = HeadStore(settings.heads_dir, settings.keys_dir)
    found: list[KeptHead | None] = []
    try:
        for name in store.names():
            if of_issuer(name, settings.issuer):
                with contextlib.suppress(HeadsDisagree):  # a damaged file, which the export reports
                    found.append(store.last(name))
    except DomainError as error:
        raise unusable(error.message) from None
    return [head.note for head in found if head is not None and head.size and head.note]


def _heads_gone(settings: RiskGateSettings) -> str:
    """Return that the heads of every log are gone from a machine that kept some, or an empty string.

    Whoever rewrites the database and removes them leaves a log that agrees with itself.
    """
    store = HeadStore(settings.heads_dir, settings.keys_dir)
    if not store.begun or store.names():
        return ""
    return (
        f"the signed heads that this machine kept in {store.folder} are gone, and without one a rewritten log looks "
        "whole: restore the folder, or give a head you kept with --checkpoint"
    )


def read_text(path: Path) -> str:
    """Return a file's text. End the command where it cannot be read."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise unusable(f"{path}: cannot be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise unusable(f"{path}: is not UTF-8 text") from None


def public_keys(given: str) -> list[PublicKey | Verifier]:
    """Read a JWK, a JWK Set (`riskgate keys export`) or a vkey, from the argument itself or the file it names."""
    text = given.strip()
    if (not text.startswith("{") and "+" not in text) or _is_file(text):
        try:
            text = Path(given).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise unusable(f"{given}: neither a key nor a file that can be read") from None
    try:
        if not text.startswith("{"):
            return [Verifier.parse(text)]
        read = json.loads(text)
        found: list[PublicKey | Verifier] = [_of_jwk(one) for one in read.get("keys", [read])]
    except (ValueError, KeyError, TypeError, AttributeError):
        found = []
    if not found:
        raise unusable("--key holds no Ed25519 JWK, JWK Set of them or vkey; `riskgate keys export` prints the keys")
    return found


def _of_jwk(jwk: dict[str, Any]) -> PublicKey:
    raw = decode(jwk["x"])
    if len(raw) != _PUBLIC_KEY_BYTES:
        raise ValueError("no Ed25519 key")
    return PublicKey(thumbprint(raw), raw, KeyState.REVOKED if "revoked" in jwk else KeyState.ACTIVE)


def _is_file(text: str) -> bool:
    try:
        return stat.S_ISREG(Path(text).stat().st_mode)
    except (OSError, ValueError):
        return False
