"""Records from a command what it did to the signing keys, in a log of its own, where the database is at hand."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable

from phylactery_chassis.clock import SystemClock
from phylactery_chassis.database import Database
from phylactery_chassis.errors import DomainError, StartError
from sqlalchemy.engine import Connection

from phylactery_riskgate.assembly import PACKAGE
from phylactery_riskgate.audit import AuditLog, LogError
from phylactery_riskgate.key_records import KeyRecords
from phylactery_riskgate.keys import DATA_FILE, KeysError, load_keys
from phylactery_riskgate.sealing import Vault
from phylactery_riskgate.settings import RiskGateSettings
from phylactery_riskgate.store.locks import BusyError

_TRIES, _PAUSE_SECONDS = 50, 0.1


def database_here(settings: RiskGateSettings) -> bool:
    """Says whether this command knows RiskGate's database; before the first start there is none."""
    embedded = settings.data_dir / f"{settings.service}.db"
    return (bool(settings.database_url) or embedded.exists()) and (settings.keys_dir / DATA_FILE).exists()


def record_change(settings: RiskGateSettings) -> str:
    """Records what is not on record of the keys as they are now; answers why it could not, empty where it did."""
    try:
        ring = load_keys(settings.keys_dir, settings.signing_key_file)
        audit = AuditLog(
            settings.keys_log_name,
            vault=Vault(ring.data_key),
            data_key_id=ring.data_key_id,
            signer=lambda: ring.signer,
            sign_every=1,
        )

        def work(connection: Connection) -> None:
            audit.open(connection)
            now_us, records = SystemClock().now_us(), KeyRecords(audit, "command")
            records.record(connection, ring.public, now_us, os_user=_os_user())

        database = Database(settings.url)
        try:
            database.migrate(PACKAGE, apply=False)
            _write(database, work)
        finally:
            database.close()
    except (DomainError, StartError, LogError, KeysError) as error:
        return error.message if isinstance(error, DomainError) else str(error)
    except BusyError:
        return "a RiskGate that serves is writing there"
    return ""


def _write(database: Database, work: Callable[[Connection], None]) -> None:
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
