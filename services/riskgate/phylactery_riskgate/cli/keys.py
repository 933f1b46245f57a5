"""`riskgate keys`: what RiskGate signs with.

Every command works on the keys folder itself (RISKGATE_KEYS_DIR, or keys in the data folder), also while replicas run:
they follow it before they sign or verify anything else. What was changed is recorded in the audit log where the
database can be reached from here; else a RiskGate that serves records it.
"""

from __future__ import annotations

import getpass
import json
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeVar

import typer
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.util.clock import MICROSECONDS, SystemClock
from phylactery_chassis.util.timestamps import to_timestamp
from sqlalchemy.engine import Connection

from phylactery_riskgate.app import PACKAGE
from phylactery_riskgate.approvals.vote_proofs import VoteProofs
from phylactery_riskgate.audit.checkpoint import Verifier
from phylactery_riskgate.audit.commitments import WORDS
from phylactery_riskgate.audit.entries import OS_USER
from phylactery_riskgate.audit.heads import HeadStore, KeptHead
from phylactery_riskgate.audit.log import SYSTEM_PRINCIPAL, AuditLog, Entry, Kind, LogError, adoption_body, open_log
from phylactery_riskgate.audit.sealing import Vault
from phylactery_riskgate.cli.common import AsJson, DataDir, has_database, settings_of, tell, unusable
from phylactery_riskgate.keys import rotation
from phylactery_riskgate.keys.journal import KeyRecords
from phylactery_riskgate.keys.ring import DATA_FILE, KeyRing, KeysError, KeyState, PublicKey, load_keys, read_signing
from phylactery_riskgate.privacy.retention import Retained, Step, next_step
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.audit_search import Position
from phylactery_riskgate.store.locks import BusyError

T = TypeVar("T")

_TRIES, _PAUSE_SECONDS = 50, 0.1


def database_here(settings: RiskGateSettings) -> bool:
    """Return True if this command can record in RiskGate's database."""
    return has_database(settings) and (settings.keys_dir / DATA_FILE).exists()


def record_change(settings: RiskGateSettings) -> str:
    """Record unrecorded changes of the keys; return the error, or an empty string."""

    def work(connection: Connection, audit: AuditLog, ring: KeyRing, now_us: int) -> None:
        KeyRecords(audit, "command").record(connection, ring.public, now_us, os_user=_os_user())

    return _record(settings, work)


def record_adoption(settings: RiskGateSettings, adopted: Mapping[str, KeptHead], reason: str) -> str:
    """Record that logs were adopted as the database holds them; return why it could not, empty where it did."""

    def work(connection: Connection, audit: AuditLog, _ring: KeyRing, now_us: int) -> None:
        values = {WORDS: reason, OS_USER: _os_user()}
        audit.append(connection, Entry(Kind.HEADS_ADOPTED, now_us, SYSTEM_PRINCIPAL, adoption_body(adopted), values))

    return _record(settings, work)


def retain(settings: RiskGateSettings, before_us: int, done: Retained) -> str:
    """Empty older records step by step; return the error, or an empty string."""
    at: tuple[str, Position | None] = ("", None)

    def work(connection: Connection, audit: AuditLog, _ring: KeyRing, now_us: int) -> Step | None:
        return next_step(connection, audit, at, before_us, lambda: now_us, {OS_USER: _os_user()})

    def ended(made: Step | None) -> bool:
        nonlocal at
        if made is None:
            return False
        done.add(made)
        at = made.next
        return True

    return _record(settings, work, more=ended)


def _record(
    settings: RiskGateSettings,
    work: Callable[[Connection, AuditLog, KeyRing, int], T],
    *,
    more: Callable[[T], bool] = lambda _done: False,
) -> str:
    """Record in the log of this command, as long as there is more; return why it could not, empty where it did."""
    try:
        ring = load_keys(settings.keys_dir, settings.signing_key_file)
        audit = AuditLog(
            settings.keys_log_name,
            vault=Vault(ring.data_key),
            data_key_id=ring.data_key_id,
            signer=lambda: ring.signer,
            heads=HeadStore(settings.heads_dir, settings.keys_dir),
            sign_every=1,
        )

        def opened(connection: Connection) -> T:
            now_us = SystemClock().now_us()
            adopt = VoteProofs(ring.data_key).adopt
            open_log(connection, audit, adopt, now_us=now_us)
            return work(connection, audit, ring, now_us)

        database = Database(settings.url)
        try:
            # what was changed in the file holds already, and a serving RiskGate records it: nothing to wait for
            database.migrate(PACKAGE, apply=False, wait_seconds=0)
            going_on = True
            while going_on:
                done = _write(database, opened)
                audit.opened()
                going_on = more(done)
        finally:
            database.close()
    except (DomainError, StartError, LogError, KeysError) as error:
        return error.message if isinstance(error, DomainError) else str(error)
    except BusyError:
        return "a RiskGate that serves is writing there"
    return ""


def _write(database: Database, work: Callable[[Connection], T]) -> T:
    """Write, again while a replica records the same. Raise BusyError where that takes too long."""
    for _ in range(_TRIES - 1):
        try:
            return database.write_sync(work)
        except BusyError:
            time.sleep(_PAUSE_SECONDS)
    return database.write_sync(work)


def _os_user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


app = typer.Typer(no_args_is_help=True, help="The signing keys: make, rotate, revoke, list, export.")


@app.command("create")
def keys_create(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Create the keys that a first start would create; existing keys are kept."""
    settings = settings_of(data_dir=data_dir)

    def create(now_us: int) -> rotation.KeyChange:
        settings.signing_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        change = rotation.create(settings.signing_file, now_us)
        load_keys(settings.keys_dir, settings.signing_key_file)
        return change

    change = _changed(create)
    what = "made" if change.changed else "is there already and stays as it is"
    _tell(as_json, settings, change, f"{settings.signing_file} {what}; {change.active_kid} signs")


@app.command("rotate")
def keys_rotate(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Make a new key active. What the former one signed still verifies; it signs nothing new."""
    settings = settings_of(data_dir=data_dir)
    change = _changed(lambda now_us: rotation.rotate(settings.signing_file, now_us))
    _tell(as_json, settings, change, f"rotated: {change.active_kid} signs from now on")


# an id is base64url, so it may begin with a hyphen without being an option
@app.command("revoke", context_settings={"ignore_unknown_options": True})
def keys_revoke(
    kid: Annotated[str, typer.Argument(help="the key's id, as `riskgate keys list` shows it")],
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Revoke a key; an active one gets a successor in the same step."""
    settings = settings_of(data_dir=data_dir)
    change = _changed(lambda now_us: rotation.revoke(settings.signing_file, kid, now_us))
    what = "revoked" if change.changed else "was revoked before"
    _tell(as_json, settings, change, f"{kid} {what}; {change.active_kid} signs")


@app.command("list")
def keys_list(data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List the public keys as kid, state, since when they are in it, and vkey."""
    settings = settings_of(data_dir=data_dir)
    described = [
        {
            "kid": one.kid,
            "state": str(one.state),
            "jwk": one.jwk,
            "vkey": Verifier(settings.issuer, one.raw).text,
            "create_time": _written(one.create_us),
            "retire_time": _written(one.retire_us),
            "revoke_time": _written(one.revoke_us),
        }
        for one in _public(settings)
    ]
    lines = [f"{'kid':43}  {'state':8}  {'in it since':27}  vkey"]
    lines += [
        f"{one['kid']}  {one['state']:8}  {one['revoke_time'] or one['retire_time'] or one['create_time'] or '-':27}"
        f"  {one['vkey']}"
        for one in described
    ]
    tell(as_json, {"issuer": settings.issuer, "keys": described}, "\n".join(lines))


@app.command("export")
def keys_export(
    data_dir: DataDir = None,
    everything: Annotated[bool, typer.Option("--all", help="revoked keys too, marked as such")] = False,
) -> None:
    """Print the public keys as a JWK Set (RFC 7517): what `audit verify --key` and any JOSE library read."""
    found = [key for key in _public(settings_of(data_dir=data_dir)) if everything or key.state is not KeyState.REVOKED]
    typer.echo(json.dumps({"keys": [_jwk(key) for key in found]}, indent=1, sort_keys=True))


def _public(settings: RiskGateSettings) -> tuple[PublicKey, ...]:
    try:
        return read_signing(settings.signing_file, mounted=settings.signing_key_file is not None)[0]
    except KeysError as error:
        raise unusable(str(error)) from None


def _changed(change: Callable[[int], rotation.KeyChange]) -> rotation.KeyChange:
    try:
        return change(SystemClock().now_us())
    except KeysError as error:
        raise unusable(str(error)) from None
    except OSError as error:
        raise unusable(f"{error.filename}: the keys cannot be changed here ({error.strerror})") from None


def _tell(as_json: bool, settings: RiskGateSettings, change: rotation.KeyChange, text: str) -> None:
    """Record the change and report it; the change remains in effect even if it could not be recorded."""
    here = database_here(settings)
    problem = record_change(settings) if here else ""
    facts = {
        "file": str(settings.signing_file),
        "active": change.active_kid,
        "changed": change.changed,
        "recorded": here and not problem,
    }
    tell(as_json, facts, text)
    if problem:
        typer.echo(
            f"riskgate: not in the audit log yet ({problem}); a RiskGate that serves records it within "
            f"{settings.checkpoint_seconds:g} s",
            err=True,
        )


def _jwk(key: PublicKey) -> dict[str, Any]:
    """Return a member of the JWK Set; times as OpenID Federation's historical keys write them, in seconds."""
    times: dict[str, Any] = {"iat": key.create_us // MICROSECONDS} if key.create_us else {}
    if key.state is KeyState.REVOKED:
        times["revoked"] = {"revoked_at": key.revoke_us // MICROSECONDS}
    return {**key.jwk, **times}


def _written(when_us: int) -> str:
    return to_timestamp(when_us).ToJsonString() if when_us else ""
