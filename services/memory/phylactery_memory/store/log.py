"""SQLite's write-ahead log, where rows still stand that were removed from the database itself."""

from __future__ import annotations

from phylactery_chassis.database import Database
from sqlalchemy.engine import Connection


async def forget_log(database: Database) -> None:
    """Empties the log, so that what was removed stands in no file; while somebody reads, it waits for the next time.

    Raises Unavailable STORE_UNAVAILABLE where the database fails. PostgreSQL has nothing of the kind to empty.
    """
    if database.dialect == "sqlite":
        await database.read(_truncate)


def _truncate(connection: Connection) -> None:
    connection.exec_driver_sql("COMMIT")  # no log is emptied from within a transaction
    connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.exec_driver_sql("BEGIN")
