"""Records what a command did, in a log of its own, where the database is at hand."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Mapping
from typing import TypeVar

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.util.clock import SystemClock
from sqlalchemy.engine import Connection

from phylactery_riskgate.assembly import PACKAGE
from phylactery_riskgate.audit import ITSELF, AuditLog, Entry, Kind, LogError
from phylactery_riskgate.call_values import WORDS
from phylactery_riskgate.entry_values import OS_USER
from phylactery_riskgate.kept_heads import HeadStore, KeptHead
from phylactery_riskgate.key_records import KeyRecords
from phylactery_riskgate.keys import DATA_FILE, KeyRing, KeysError, load_keys
from phylactery_riskgate.log_opening import adoption_body, open_log
from phylactery_riskgate.retention import Retained, Step, next_step
from phylactery_riskgate.sealing import Vault
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.audit_search import Position
from phylactery_riskgate.store.locks import BusyError
from phylactery_riskgate.vote_proofs import VoteProofs

T = TypeVar("T")

_TRIES, _PAUSE_SECONDS = 50, 0.1


def database_here(settings: RiskGateSettings) -> bool:
    """Says whether this command knows RiskGate's database; before the first start there is none."""
    embedded = settings.data_dir / f"{settings.service}.db"
    return (bool(settings.database_url) or embedded.exists()) and (settings.keys_dir / DATA_FILE).exists()


def record_change(settings: RiskGateSettings) -> str:
    """Records what is not on record of the keys as they are now; answers why it could not, empty where it did."""

    def work(connection: Connection, audit: AuditLog, ring: KeyRing, now_us: int) -> None:
        KeyRecords(audit, "command").record(connection, ring.public, now_us, os_user=_os_user())

    return _record(settings, work)


def record_adoption(settings: RiskGateSettings, adopted: Mapping[str, KeptHead], reason: str) -> str:
    """Records that logs were adopted as the database holds them; answers why it could not, empty where it did."""

    def work(connection: Connection, audit: AuditLog, _ring: KeyRing, now_us: int) -> None:
        values = {WORDS: reason, OS_USER: _os_user()}
        audit.append(connection, Entry(Kind.HEADS_ADOPTED, now_us, ITSELF, adoption_body(adopted), values))

    return _record(settings, work)


def retain(settings: RiskGateSettings, before_us: int, done: Retained) -> str:
    """Empties what is older, a step at a time; answers why it could not go on, empty where it came to the end."""
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
    """Records in the log of this command, as long as there is more; answers why it could not, empty where it did."""
    try:
        ring = load_keys(settings.keys_dir, settings.signing_key_file)
        audit = AuditLog(
            settings.keys_log_name,
            vault=Vault(ring.data_key),
            data_key_id=ring.data_key_id,
            signer=lambda: ring.signer,
            heads=HeadStore(settings.heads_dir),
            sign_every=1,
        )

        def opened(connection: Connection) -> T:
            now_us = SystemClock().now_us()
            open_log(connection, audit, VoteProofs(ring.data_key), believed=ring.verifying.values(), now_us=now_us)
            return work(connection, audit, ring, now_us)

        database = Database(settings.url)
        try:
            database.migrate(PACKAGE, apply=False)
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
    """Writes, again while a replica records the same. Raises BusyError where that takes too long."""
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
