"""After a failed sync nothing is written any more until the service starts again, and reads what is really there.

A system whose fsync failed may call pages clean that never reached the disk: the next fsync then "succeeds", and an
answer after it would promise what a cut of power loses. PostgreSQL stops by itself; SQLite leaves it to us.

SQLite tells nobody of a checkpoint it made by itself and could not sync. What it moved still stands in the log, which
was synced before the write was answered, and the next checkpoint writes it once more.
"""

from __future__ import annotations

import sqlite3

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, ExceptionContext

from phylactery_chassis.errors import Unavailable
from phylactery_chassis.logs import get_logger

_FAILED_SYNC = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE})

_log = get_logger("database")


def stop_after_failed_sync(engine: Engine) -> None:
    """Makes every write of an engine Unavailable STORE_UNAVAILABLE once a sync failed; reads go on.

    A write is a transaction with the execution option phylactery_write.
    """
    failed: list[int] = []

    @sa.event.listens_for(engine, "handle_error")
    def _note(context: ExceptionContext) -> None:
        code = getattr(context.original_exception, "sqlite_errorcode", 0)
        if code in _FAILED_SYNC and not failed:
            failed.append(code)
            _log.error("a sync failed; nothing is written any more until the service starts again", sqlite_code=code)

    @sa.event.listens_for(engine, "begin")
    def _refuse(connection: Connection) -> None:
        if failed and connection.get_execution_options().get("phylactery_write"):
            raise Unavailable(
                "STORE_UNAVAILABLE",
                "the disk failed to keep a write, so nothing is written any more; check the disk, then start the "
                "service again",
            )
