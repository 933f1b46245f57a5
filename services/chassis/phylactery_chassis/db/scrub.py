"""Removal of deleted rows from SQLite's files: from the write-ahead log and from free space of the database.

``secure_delete`` overwrites what a statement frees. It does not overwrite copies left in a page's free space when a
tree is rebalanced, as is frequent with large rows; only a rewritten file (VACUUM) is free of them. PostgreSQL has no
such log; a deleted row stays in its pages until they are reused after its VACUUM.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy.engine import Connection

from phylactery_chassis.db.database import Database
from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.unit import ConflictError, unit_of
from phylactery_chassis.errors import Unavailable

_ONE_AT_A_TIME = threading.Lock()
"""SQLite refuses the second of two concurrent checkpoints without waiting, as if a reader held the log."""

_MAX_NOTE = 2**31 - 1


def note_removed(connection: Connection) -> None:
    """Record, in the transaction that removes something, that scrub_removed must rewrite the file."""
    if not dialect_of(connection).is_server:
        _set_note(connection, _note(connection) % _MAX_NOTE + 1)


async def scrub_removed(database: Database) -> bool:
    """Remove everything noted as removed from all files. Return False if a reader still holds the log.

    The file is rewritten (VACUUM), which temporarily needs twice its size in its own folder and takes about a second
    per few hundred megabytes; other writes wait. What was noted before a process was killed is removed by the next
    call. Raise Unavailable STORE_UNAVAILABLE or StoreFull if the database fails or has no room.
    """
    if not database.dialect.is_server:
        await database.write(_write_anew)
    return await forget_log(database)


async def forget_erased(database: Database) -> None:
    """Remove all traces of an erased user from the files; see scrub_removed. Raise Unavailable if it cannot."""
    if not await scrub_removed(database):
        raise Unavailable(
            "STORE_UNAVAILABLE",
            "everything is erased, but a reader still holds old pages of the log; retry with the same request_id to "
            "empty it",
        )


async def forget_log(database: Database) -> bool:
    """Empty the log, so that removed rows are in no file. Return False if a reader still holds it.

    Raise Unavailable STORE_UNAVAILABLE if the database fails. PostgreSQL has no such log.
    """
    return database.dialect.is_server or await database.read(_truncate)


def _truncate(connection: Connection) -> bool:
    connection.exec_driver_sql("COMMIT")  # the log cannot be emptied inside a transaction
    try:
        with _ONE_AT_A_TIME:
            busy = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").scalar_one()
    finally:
        connection.exec_driver_sql("BEGIN")
    return not busy


def _write_anew(connection: Connection) -> None:
    noted, unit = _note(connection), unit_of(connection)
    if not noted:
        return
    if unit is None or not unit.alone:
        raise ConflictError  # other jobs of the unit would be committed too early
    connection.exec_driver_sql("COMMIT")  # VACUUM cannot run inside a transaction
    try:
        _copy_beside(connection)
        connection.exec_driver_sql("VACUUM")
    finally:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    if _note(connection) == noted:  # unless another process removed something meanwhile
        _set_note(connection, 0)


def _copy_beside(connection: Connection) -> None:
    """Make VACUUM put its temporary copy of the database in the database's folder.

    Otherwise it is in the system's temporary directory, possibly on a disk not meant for user data, or in memory.
    """
    (path,) = (row[2] for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
    folder = str(Path(path).parent)
    if connection.exec_driver_sql("PRAGMA temp_store_directory").scalar() != folder:  # the setting is process-wide
        quoted = folder.replace("'", "''")
        connection.exec_driver_sql(f"PRAGMA temp_store_directory = '{quoted}'")


def _note(connection: Connection) -> int:
    """Return the application's number in SQLite's file header (user_version), not used for anything else here."""
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def _set_note(connection: Connection, note: int) -> None:
    connection.exec_driver_sql(f"PRAGMA user_version = {note}")
