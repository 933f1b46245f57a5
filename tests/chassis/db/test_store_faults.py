"""Store errors that mean a full disk, on either store and on a plain file."""

from __future__ import annotations

import asyncio
import errno
import sqlite3
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.errors import fault_of, is_full, may_be_kept
from phylactery_chassis.errors import StoreFull, Unavailable

from tests.support.servers.postgres import create_database


def sqlite_fault(code: int) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("the driver's own words")
    error.sqlite_errorcode = code
    return error


@pytest.mark.parametrize(
    ("fault", "full"),
    [
        (sqlite_fault(sqlite3.SQLITE_FULL), True),
        (sqlite_fault(sqlite3.SQLITE_IOERR_SHMSIZE), True),
        (sqlite_fault(sqlite3.SQLITE_IOERR_WRITE), False),
        (sqlite_fault(sqlite3.SQLITE_IOERR_FSYNC), False),
        (sqlite_fault(sqlite3.SQLITE_BUSY), False),
        (OSError(errno.ENOSPC, "no space"), True),
        (OSError(errno.EDQUOT, "no quota"), True),
        (OSError(errno.EACCES, "no right"), False),
        (ValueError("no"), False),
    ],
    ids=repr,
)
def test_only_what_says_so_is_a_full_disk(fault: Exception, full: bool):
    assert is_full(fault) is full
    told = fault_of(sa.exc.OperationalError("SELECT 1", None, fault))
    assert isinstance(told, StoreFull if full else Unavailable)


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        (sqlite3.SQLITE_IOERR_FSYNC, True),
        (sqlite3.SQLITE_IOERR_SHMSIZE, False),
        (sqlite3.SQLITE_FULL, False),
        (sqlite3.SQLITE_BUSY, False),
    ],
)
def test_a_commit_whose_sync_failed_may_be_kept_and_one_that_was_refused_is_not(code: int, kept: bool):
    assert may_be_kept(sa.exc.OperationalError("", None, sqlite_fault(code))) is kept


def test_what_a_driver_says_of_a_file_that_may_not_grow_is_a_full_disk(tmp_path: Path):
    with sqlite3.connect(tmp_path / "x.db") as connection:
        connection.execute("PRAGMA max_page_count = 2")
        with pytest.raises(sqlite3.OperationalError) as caught:
            connection.executescript("CREATE TABLE a (b); CREATE TABLE c (d); CREATE TABLE e (f)")
    connection.close()
    assert is_full(caught.value)


async def test_what_postgresql_calls_a_full_disk_is_one_and_is_refused_alone(postgres_url: str):
    database = Database(create_database(postgres_url, "full_disk"))
    no_room = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    try:
        await database.write(lambda c: c.execute(sa.text("CREATE TABLE rows (id BIGINT PRIMARY KEY)")).rowcount)
        insert = lambda key: lambda c: c.execute(sa.text(f"INSERT INTO rows VALUES ({key})")).rowcount  # noqa: E731
        first, full, last = await asyncio.gather(
            database.write(insert(1)),
            database.write(lambda c: c.execute(sa.text(no_room)).rowcount),
            database.write(insert(2)),
            return_exceptions=True,
        )
        assert (first, last) == (1, 1)
        assert isinstance(full, StoreFull)
        assert await database.read(lambda c: c.execute(sa.text("SELECT count(*) FROM rows")).scalar_one()) == 2
    finally:
        database.close()
