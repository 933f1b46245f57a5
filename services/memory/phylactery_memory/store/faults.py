"""What the database's own faults mean here: a full disk is said to be one, and a failed sync ends all writing.

After a failed fsync the system may call pages clean that never reached the disk, so that the next one "succeeds" and
an answer would promise what is lost. Nothing is written any more until the service starts again, and reads what is
really there.
"""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from phylactery_chassis.database import Database
from phylactery_chassis.errors import ResourceExhausted, Unavailable
from phylactery_chassis.logs import get_logger
from sqlalchemy.engine import Connection, ExceptionContext

_FAILED_SYNC = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE})
_PRIMARY = 0xFF
_DISK_FULL = "53100"
"""PostgreSQL's SQLSTATE of a full disk."""

_log = get_logger("store")


def watch(database: Database) -> None:
    """Makes a full disk ResourceExhausted STORE_FULL, and every write after a failed sync Unavailable."""
    failed_sync: list[int] = []

    @sa.event.listens_for(database.engine, "handle_error")
    def _on_error(context: ExceptionContext) -> None:
        code = getattr(context.original_exception, "sqlite_errorcode", 0)
        if code in _FAILED_SYNC and not failed_sync:
            failed_sync.append(code)
            _log.error("a sync failed; nothing is written any more until the service starts again", sqlite_code=code)
        full = code & _PRIMARY == sqlite3.SQLITE_FULL
        if full or getattr(context.original_exception, "sqlstate", "") == _DISK_FULL:
            raise ResourceExhausted(
                "STORE_FULL", "the disk below the database is full, so nothing changed; make room and try again"
            )

    @sa.event.listens_for(database.engine, "begin")
    def _on_begin(connection: Connection) -> None:
        if failed_sync and connection.get_execution_options().get("phylactery_write"):
            raise Unavailable(
                "STORE_UNAVAILABLE",
                "the disk failed to keep a write, so nothing is written any more; check the disk, then start the "
                "service again",
            )
