"""The command `riskgate`: serve, and what a security team does beside the running service."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Annotated, Any

import typer
from phylactery_chassis.database import Database
from phylactery_chassis.errors import DomainError
from phylactery_chassis.server import migrate as migrate_database
from phylactery_chassis.settings import explain
from pydantic import ValidationError

from phylactery_riskgate.__main__ import serve as serve_forever
from phylactery_riskgate.audit_export import ExportError, export_log, verify_export
from phylactery_riskgate.checkpoint import NoteError, Verifier
from phylactery_riskgate.domain.bundle import Bundle, BundleError, load_bundle
from phylactery_riskgate.domain.engine import run_bundle_tests
from phylactery_riskgate.keys import KeysError, KeyState, PublicKey, load_keys, read_public_keys
from phylactery_riskgate.permits import TokenError, decode, thumbprint
from phylactery_riskgate.settings import RiskGateSettings

FAILED, UNUSABLE = 1, 2
"""Exit codes: the check found something; the command could not be carried out."""

_PUBLIC_KEY_BYTES = 32

app = typer.Typer(
    no_args_is_help=True, add_completion=False, help="RiskGate: decides about tool calls and keeps the record."
)
audit = typer.Typer(no_args_is_help=True, help="The audit log: export it, check it.")
keys = typer.Typer(no_args_is_help=True, help="The public keys.")
policy = typer.Typer(no_args_is_help=True, help="Policy bundles: check them, run their tests.")
app.add_typer(audit, name="audit")
app.add_typer(keys, name="keys")
app.add_typer(policy, name="policy")

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="RiskGate's data folder (RISKGATE_DATA_DIR)")]
AsJson = Annotated[bool, typer.Option("--json", help="one JSON object instead of text")]
BundleFolder = Annotated[Path, typer.Argument(metavar="DIR", help="the bundle's folder")]


@app.command()
def serve(
    bundle: Annotated[Path | None, typer.Option(help="the bundle's folder; none is the packaged one")] = None,
    data_dir: DataDir = None,
    host: Annotated[str | None, typer.Option(help="address to listen on")] = None,
    port: Annotated[int | None, typer.Option(help="port to listen on; 0 takes a free one")] = None,
) -> None:
    """Serves until it is stopped. Every other setting comes from RISKGATE_… variables."""
    serve_forever(**_given(bundle=bundle, data_dir=data_dir, host=host, port=port))


@app.command()
def migrate() -> None:
    """Brings the database to this version's schema. SQLite does so at every start; PostgreSQL only here."""
    migrate_database(RiskGateSettings)


@audit.command("export")
def audit_export(
    out: Annotated[Path, typer.Option("--out", help="the file to write")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Writes the log, its signed heads and the public keys to a file, also while the service runs."""
    settings = _settings(data_dir=data_dir)
    path = settings.data_dir / f"{settings.service}.db"
    if not settings.database_url and not path.exists():
        raise _unusable(f"{path}: there is no database; name RiskGate's data folder with --data-dir")
    try:
        ring = load_keys(settings.keys_dir) if settings.keys_dir.exists() else None
        if ring is None:
            raise _unusable(f"{settings.keys_dir}: there are no keys; name RiskGate's data folder with --data-dir")
        database = Database(settings.url)
        try:
            count = database.read_sync(
                lambda connection: export_log(connection, settings.issuer, out, keys=ring.public, signer=ring.signer)
            )
        finally:
            database.close()
    except OSError as error:
        raise _unusable(f"{out}: cannot be written ({error.strerror})") from None
    except (KeysError, ExportError, DomainError) as error:
        raise _unusable(str(error)) from None
    _tell(as_json, {"entries": count, "file": str(out)}, f"{count} entries of log '{settings.issuer}' in {out}")


@audit.command("verify")
def audit_verify(
    file: Annotated[Path, typer.Argument(help="an export")],
    key: Annotated[
        str | None,
        typer.Option("--key", help="the public key to believe: a JWK or vkey, or the name of a file that holds one"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Checks an export offline. Exit code 1: an entry is altered, missing, out of order or unsigned."""
    found = verify_export(file, [_public_key(key)] if key else None)
    facts = {
        "ok": found.ok,
        "log": found.origin,
        "entries": found.entries,
        "problem": found.problem,
        "first_bad_entry": found.first_bad,
        "key_trusted": key is not None,
    }
    if not found.ok:
        where = "" if found.first_bad is None else f" (first bad entry: {found.first_bad})"
        _tell(as_json, facts, f"NOT VERIFIED: {found.problem}{where}")
        raise typer.Exit(FAILED)
    _tell(as_json, facts, f"verified: {found.entries} entries of log '{found.origin}', complete and unaltered")
    if key is None and not as_json:
        typer.echo("with the key in the file itself: give --key to also know whose log it is", err=True)


@keys.command("list")
def keys_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Lists the public keys as kid, state and vkey."""
    settings = _settings(data_dir=data_dir)
    try:
        found = read_public_keys(settings.keys_dir)
    except KeysError as error:
        raise _unusable(str(error)) from None
    described = [
        {"kid": one.kid, "state": str(one.state), "jwk": one.jwk, "vkey": Verifier(settings.issuer, one.raw).text}
        for one in found
    ]
    text = "\n".join(f"{one['kid']}  {one['state']}  {one['vkey']}" for one in described)
    _tell(as_json, {"issuer": settings.issuer, "keys": described}, text)


@policy.command("check")
def policy_check(folder: BundleFolder, as_json: AsJson = False) -> None:
    """Checks a bundle as the service does at its start. Exit code 1: it would not be accepted."""
    bundle = _bundle(folder, as_json=as_json)
    _tell(
        as_json,
        {"ok": True, "revision": bundle.revision, "hash": bundle.hash, "tools": sorted(bundle.tools)},
        f"ok: revision {bundle.revision}, {len(bundle.tools)} tools, {bundle.hash}",
    )


@policy.command("test")
def policy_test(folder: BundleFolder, as_json: AsJson = False) -> None:
    """Runs the cases in a bundle's tests folder. Exit code 1: at least one came out differently."""
    results = run_bundle_tests(_bundle(folder, as_json=as_json))
    failed = [result for result in results if not result.passed]
    lines = [f"FAILED {result.name}: {'; '.join(result.differences)}" for result in failed]
    summary = f"{len(results) - len(failed)} of {len(results)} cases passed"
    failures = [{"case": result.name, "differences": list(result.differences)} for result in failed]
    _tell(as_json, {"ok": not failed, "cases": len(results), "failures": failures}, "\n".join([*lines, summary]))
    if failed:
        raise typer.Exit(FAILED)


def main() -> None:
    """Runs the command."""
    app()


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _settings(**options: Any) -> RiskGateSettings:
    try:
        return RiskGateSettings(**_given(**options))
    except ValidationError as error:
        raise _unusable(explain(error, "RISKGATE_")) from None


def _bundle(folder: Path, *, as_json: bool) -> Bundle:
    try:
        return load_bundle(folder)
    except BundleError as error:
        facts = {"ok": False, "file": error.file, "line": error.line, "message": error.message}
        _tell(as_json, facts, f"NOT ACCEPTED: {error}")
        raise typer.Exit(FAILED) from None


def _public_key(given: str) -> PublicKey | Verifier:
    """Reads a JWK or a vkey, from the argument itself or from the file it names."""
    text = given.strip()
    if (not text.startswith("{") and "+" not in text) or _is_file(text):
        try:
            text = Path(given).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise _unusable(f"{given}: neither a key nor a file that can be read") from None
    try:
        if not text.startswith("{"):
            return Verifier.parse(text)
        raw = decode(json.loads(text)["x"])
    except (NoteError, TokenError, ValueError, KeyError, TypeError, AttributeError):
        raw = b""
    if len(raw) != _PUBLIC_KEY_BYTES:
        raise _unusable("--key is neither an Ed25519 JWK nor a vkey")
    return PublicKey(thumbprint(raw), raw, KeyState.ACTIVE)


def _is_file(text: str) -> bool:
    try:
        return stat.S_ISREG(Path(text).stat().st_mode)
    except (OSError, ValueError):
        return False


def _tell(as_json: bool, facts: dict[str, Any], text: str) -> None:
    typer.echo(json.dumps(facts, ensure_ascii=False, sort_keys=True) if as_json else text)


def _unusable(message: str) -> typer.Exit:
    typer.echo(f"riskgate: {message}", err=True)
    return typer.Exit(UNUSABLE)


if __name__ == "__main__":
    main()
