"""Verification that all replicas of a database share one data folder; without it an agent refuses to start."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import RowInsert
from phylactery_chassis.errors import StartError
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.storage.schema import MARKS
from phylactery_agent.runtime.storage.sealing import KEY_FILE, Sealer

_KEY: Final = "seal_key"
_JOURNAL: Final = "journal"
_JOURNAL_FILE: Final = "journal.id"
_ADD: Final = RowInsert(MARKS, "name", "value", otherwise="ON CONFLICT DO NOTHING")


def require_same_folder(database: Database, folder: Path, sealer: Sealer) -> None:
    """Record, or verify, the key that a database is used with, and the effect journal of a shared one.

    With another key the same message would be rejected as different, and nothing that is sealed could be read; another
    journal could not tell whether a write was done, but over SQLite it is next to the database. Raise StartError.
    """
    if _noted(database, _KEY, sealer.fingerprint) != sealer.fingerprint:
        raise StartError(_different(folder / KEY_FILE, "the key", _KEY))
    if not database.dialect.is_server:
        return
    name = _journal_name(folder / _JOURNAL_FILE)
    if _noted(database, _JOURNAL, name) != name:
        raise StartError(_different(folder / _JOURNAL_FILE, "the journal of effects", _JOURNAL))


def _different(path: Path, what: str, mark: str) -> str:
    return (
        f"{path} does not belong to {what} this database is used with: restore the file from a backup; all agents over "
        "one database share one folder: name the others' in AGENT_DATA_DIR, or, where that is lost for good and no "
        f"other agent runs, remove the row '{mark}' of agent_marks"
    )


def _journal_name(path: Path) -> str:
    """Return the name of the folder's journal, creating it on first use. Raise StartError."""
    try:
        try:
            with path.open("x", encoding="ascii") as file:
                file.write(secrets.token_hex(16))
        except FileExistsError:
            pass
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise StartError(f"{path} cannot be used ({type(error).__name__}); see to AGENT_DATA_DIR") from None


def _noted(database: Database, name: str, value: str) -> str:
    """Return the value recorded under a name, recording the given one if there was none."""

    def work(connection: Connection) -> str:
        _ADD.run(connection, [(name, value)])
        return str(connection.execute(sa.select(MARKS.c.value).where(MARKS.c.name == name)).scalar_one())

    return database.write_sync(work)
