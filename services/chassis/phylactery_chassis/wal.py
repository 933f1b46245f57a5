"""SQLite's write-ahead log, where rows still stand that were removed from the database itself."""

from __future__ import annotations

import threading

from sqlalchemy.engine import Connection

from phylactery_chassis.database import Database

_ONE_AT_A_TIME = threading.Lock()
"""Of two checkpoints at once SQLite refuses the second without waiting, as if a reader held the log."""


async def forget_log(database: Database) -> bool:
    """Empties the log, so that what was removed stands in no file; says whether it could, for a reader may hold it.

    Raises Unavailable STORE_UNAVAILABLE where the database fails. PostgreSQL has nothing of the kind to empty.
    """
    return database.dialect != "sqlite" or await database.read(_truncate)


def _truncate(connection: Connection) -> bool:
    connection.exec_driver_sql("COMMIT")  # no log is emptied from within a transaction
    try:
        with _ONE_AT_A_TIME:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar_one()
    finally:
        connection.exec_driver_sql("BEGIN")
    return not busy
