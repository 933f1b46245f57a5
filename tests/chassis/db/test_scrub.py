"""Removed rows are in no file of SQLite, whatever its trees keep in free space."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log, note_removed, scrub_removed
from phylactery_chassis.errors import FailedPrecondition, Unavailable

MARK = b"zarzuela"


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    database.write_sync(
        lambda connection: connection.exec_driver_sql(
            "CREATE TABLE pieces (name TEXT PRIMARY KEY, body BLOB) WITHOUT ROWID"
        ).close()
    )
    yield database
    database.close()


async def fill(db: Database, seed: int) -> None:
    """Write rows of many sizes, each third of which holds the mark, in an order that makes the tree balance itself."""
    dice = random.Random(seed)

    def one(connection: sa.Connection, index: int) -> None:
        marked = index % 3 == 0
        body = (MARK + b"%06d" % index) * dice.randint(1, 40) if marked else b"x" * dice.randint(10, 700)
        name = f"{'marked' if marked else 'plain'}-{dice.random()}"
        connection.exec_driver_sql("INSERT INTO pieces VALUES (?, ?)", (name[::-1], body)).close()

    for index in range(400):
        await db.write(lambda connection, index=index: one(connection, index))


def remove(connection: sa.Connection) -> None:
    connection.exec_driver_sql("DELETE FROM pieces WHERE name LIKE '%dekram'").close()
    note_removed(connection)


def marks(folder: Path) -> int:
    """Return how often the mark stands in the files."""
    return sum(path.read_bytes().count(MARK) for path in folder.glob("x.db*"))


def kept(connection: sa.Connection) -> int:
    return int(connection.exec_driver_sql("SELECT count(*) FROM pieces").scalar_one())


async def test_what_a_tree_keeps_in_its_free_space_goes_where_the_file_is_written_anew(db: Database, tmp_path: Path):
    for seed in range(20):
        await fill(db, seed)
        await db.write(remove)
        assert await forget_log(db)
        if marks(tmp_path):
            break
    left, rows = marks(tmp_path), await db.read(kept)
    assert left, "SQLite overwrites it by itself now: the file need not be written anew any more"
    assert await scrub_removed(db)
    assert marks(tmp_path) == 0
    assert await db.read(kept) == rows > 0


async def test_the_copy_made_meanwhile_lies_in_the_folder_of_the_file(db: Database, tmp_path: Path):
    def add(connection: sa.Connection) -> None:
        connection.exec_driver_sql("INSERT INTO pieces VALUES ('large', randomblob(8000000))").close()
        note_removed(connection)

    copies: set[Path] = set()

    def look() -> int:
        for link in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):
                copies.add(link.readlink())
        return 0

    def watch(_connection, cursor, statement: str, *_rest: object) -> None:
        cursor.connection.set_progress_handler(look if statement == "VACUUM" else None, 1)

    await db.write(add)
    sa.event.listen(db.engine, "before_cursor_execute", watch)
    assert await scrub_removed(db)
    named = {path.parent for path in copies if path.name.startswith("etilqs_")}
    assert named == {tmp_path}


async def test_writes_beside_it_are_kept_and_refused_alone(db: Database, tmp_path: Path):
    await fill(db, 0)
    await db.write(remove)
    before = await db.read(kept)

    def refuse(connection: sa.Connection) -> None:
        connection.exec_driver_sql("INSERT INTO pieces VALUES ('refused', x'')").close()
        raise FailedPrecondition("NOT_NOW", "not now")

    def add(index: int):
        return lambda connection: connection.exec_driver_sql(f"INSERT INTO pieces VALUES ('{index}', x'')").rowcount

    answers = await asyncio.gather(
        db.write(add(1)), scrub_removed(db), db.write(refuse), db.write(add(2)), return_exceptions=True
    )
    assert answers[:2] == [1, True]
    assert isinstance(answers[2], FailedPrecondition)
    assert answers[3] == 1
    assert await db.read(kept) == before + 2
    assert marks(tmp_path) == 0


async def test_it_is_done_once_for_what_was_noted_and_again_where_it_was_not_finished(db: Database, tmp_path: Path):
    said: list[str] = []
    sa.event.listen(
        db.engine, "before_cursor_execute", lambda _c, _cursor, statement, *_rest: said.append(statement), named=False
    )
    await scrub_removed(db)
    assert "VACUUM" not in said
    await fill(db, 0)
    await db.write(remove)
    blocker = sqlite3.connect(tmp_path / "x.db", isolation_level=None)
    blocker.execute("PRAGMA busy_timeout=0")
    await db.write(lambda connection: connection.exec_driver_sql("PRAGMA busy_timeout=0").close())
    blocker.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable):
        await scrub_removed(db)
    blocker.execute("ROLLBACK")
    blocker.close()
    assert await scrub_removed(db)
    assert said.count("VACUUM") == 1
    assert marks(tmp_path) == 0
    assert await scrub_removed(db)
    assert said.count("VACUUM") == 1
