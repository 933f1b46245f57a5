"""`riskgate audit`: the log, exported and checked."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Annotated

import typer
from phylactery_chassis.database import Database
from phylactery_chassis.errors import DomainError

from phylactery_riskgate.audit_export import ExportError, export_log, verify_export
from phylactery_riskgate.checkpoint import NoteError, Verifier
from phylactery_riskgate.cli.common import FAILED, AsJson, DataDir, settings_of, tell, unusable
from phylactery_riskgate.keys import KeysError, KeyState, PublicKey, load_keys
from phylactery_riskgate.permits import TokenError, decode, thumbprint

_PUBLIC_KEY_BYTES = 32

app = typer.Typer(no_args_is_help=True, help="The audit log: export it, check it.")


@app.command("export")
def audit_export(
    out: Annotated[Path, typer.Option("--out", help="the file to write")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Writes the log, its signed heads and the public keys to a file, also while the service runs."""
    settings = settings_of(data_dir=data_dir)
    path = settings.data_dir / f"{settings.service}.db"
    if not settings.database_url and not path.exists():
        raise unusable(f"{path}: there is no database; name RiskGate's data folder with --data-dir")
    try:
        ring = load_keys(settings.keys_dir) if settings.keys_dir.exists() else None
        if ring is None:
            raise unusable(f"{settings.keys_dir}: there are no keys; name RiskGate's data folder with --data-dir")
        database = Database(settings.url)
        try:
            count = database.read_sync(
                lambda connection: export_log(connection, settings.issuer, out, keys=ring.public, signer=ring.signer)
            )
        finally:
            database.close()
    except OSError as error:
        raise unusable(f"{out}: cannot be written ({error.strerror})") from None
    except (KeysError, ExportError, DomainError) as error:
        raise unusable(str(error)) from None
    tell(as_json, {"entries": count, "file": str(out)}, f"{count} entries of log '{settings.issuer}' in {out}")


@app.command("verify")
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
        tell(as_json, facts, f"NOT VERIFIED: {found.problem}{where}")
        raise typer.Exit(FAILED)
    tell(as_json, facts, f"verified: {found.entries} entries of log '{found.origin}', complete and unaltered")
    if key is None and not as_json:
        typer.echo("with the key in the file itself: give --key to also know whose log it is", err=True)


def _public_key(given: str) -> PublicKey | Verifier:
    """Reads a JWK or a vkey, from the argument itself or from the file it names."""
    text = given.strip()
    if (not text.startswith("{") and "+" not in text) or _is_file(text):
        try:
            text = Path(given).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            raise unusable(f"{given}: neither a key nor a file that can be read") from None
    try:
        if not text.startswith("{"):
            return Verifier.parse(text)
        raw = decode(json.loads(text)["x"])
    except (NoteError, TokenError, ValueError, KeyError, TypeError, AttributeError):
        raw = b""
    if len(raw) != _PUBLIC_KEY_BYTES:
        raise unusable("--key is neither an Ed25519 JWK nor a vkey")
    return PublicKey(thumbprint(raw), raw, KeyState.ACTIVE)


def _is_file(text: str) -> bool:
    try:
        return stat.S_ISREG(Path(text).stat().st_mode)
    except (OSError, ValueError):
        return False
