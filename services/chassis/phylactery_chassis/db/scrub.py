"""What is left in SQLite's files of rows that were removed: in the write-ahead log, and in free space of the database.

``secure_delete`` overwrites what a statement frees. It does not overwrite copies that a page keeps in its free space
when a tree is balanced, as trees with large rows often are; only a file that is written anew is without them.
PostgreSQL has no such log; a row that was removed stands in its pages until they are used again, after its VACUUM.
"""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy.engine import Connection

from phylactery_chassis.db.database import Database
from phylactery_chassis.db.unit import ConflictError, unit_of
from phylactery_chassis.errors import Unavailable

_ONE_AT_A_TIME = threading.Lock()
"""Of two checkpoints at once SQLite refuses the second without waiting, as if a reader held the log."""

_MAX_NOTE = 2**31 - 1


def note_removed(connection: Connection) -> None:
    """Note, in the transaction that removes something, that forget_removed has to write the file anew."""
    if connection.dialect.name == "sqlite":
        _set_note(connection, _note(connection) % _MAX_NOTE + 1)


async def forget_removed(database: Database) -> bool:
    """Leave nothing in any file of what was removed and noted; say whether it could, for a reader may hold the log.

    A file is written anew, which takes twice its room again, in its own folder, and a second for some hundred
    megabytes; nothing else is written meanwhile. What was noted and not forgotten, because a process was killed, is
    forgotten the next time.
    Raise Unavailable STORE_UNAVAILABLE and StoreFull where the database fails or finds no room.
    """
    if database.dialect == "sqlite":
        await database.write(_write_anew)
    return await forget_log(database)


async def forget_erased(database: Database) -> None:
    """Leave nothing in any file of a user who was erased; see forget_removed. Raise Unavailable while it cannot."""
    if not await forget_removed(database):
        raise Unavailable(
            "STORE_UNAVAILABLE",
            "everything is erased, and a reader still holds old pages of the log; "
            "ask again with the same request_id, which empties it",
        )


async def forget_log(database: Database) -> bool:
    """Empty the log, so that what was removed stands in no file; say whether it could, for a reader may hold it.

    Raise Unavailable STORE_UNAVAILABLE where the database fails. PostgreSQL has nothing of the kind to empty.
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


def _write_anew(connection: Connection) -> None:
    noted, unit = _note(connection), unit_of(connection)
    if not noted:
        return
    if unit is None or not unit.alone:
        raise ConflictError  # what runs beside it would be committed too early
    connection.exec_driver_sql("COMMIT")  # no file is written anew from within a transaction
    try:
        _copy_beside(connection)
        connection.exec_driver_sql("VACUUM")
    finally:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
    if _note(connection) == noted:  # unless another process removed something meanwhile
        _set_note(connection, 0)


def _copy_beside(connection: Connection) -> None:
    """Have the copy of everything that VACUUM makes lie in the file's own folder.

    Otherwise it lies in the system's for temporary files: on a disk nobody chose for people's words, or in memory.
    """
    (path,) = (row[2] for row in connection.exec_driver_sql("PRAGMA database_list") if row[1] == "main")
    folder = str(Path(path).parent)
    if connection.exec_driver_sql("PRAGMA temp_store_directory").scalar() != folder:  # it is the whole process' own
        quoted = folder.replace("'", "''")
        connection.exec_driver_sql(f"PRAGMA temp_store_directory = '{quoted}'")


def _note(connection: Connection) -> int:
    """Return the number SQLite keeps for an application in the file's head, which nothing else here uses."""
    return int(connection.exec_driver_sql("PRAGMA user_version").scalar_one())


def _set_note(connection: Connection, note: int) -> None:
    connection.exec_driver_sql(f"PRAGMA user_version = {note}")
