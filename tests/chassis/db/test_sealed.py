"""Columns whose values are sealed in the store: for every kind of statement, and for the library's own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.sealed import SealedBytes, SealedText, in_clear, seal_under
from phylactery_chassis.db.statements import Change, ManyInsert, Query, RowInsert, RowUpdate, Update
from phylactery_chassis.errors import DataLoss
from phylactery_chassis.util.crypto import Box
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from tests.support.servers.postgres import create_database

LETTERS = sa.Table(
    "letters",
    sa.MetaData(),
    sa.Column("name", sa.String(20), primary_key=True),
    sa.Column("body", SealedBytes("letters.body"), nullable=True),
    sa.Column("note", SealedText("letters.note"), nullable=True),
)
ROW = ("one", b"heron \x00 quay", "lantern ñ")
ALL = Query(sa.select(LETTERS).order_by(LETTERS.c.name))


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    server = request.param == "postgresql"
    url = f"sqlite:///{tmp_path / 'letters.db'}"
    opened = Database(create_database(request.getfixturevalue("postgres_url"), new_id("letters")) if server else url)
    seal_under(opened, Box(bytes(32)))
    LETTERS.metadata.drop_all(opened.engine)
    LETTERS.metadata.create_all(opened.engine)
    yield opened
    opened.close()


def stored(database: Database) -> list[Any]:
    """Return what lies in the store."""
    query = sa.text("SELECT name, body, note FROM letters ORDER BY name")
    return database.read_sync(lambda c: [tuple(row) for row in c.execute(query)])


def add(connection: Connection) -> None:
    RowInsert(LETTERS, "name", "body", "note").run(connection, [ROW])


def add_later(connection: Connection) -> None:
    RowInsert(LETTERS, "name", "body", "note").later(connection, [ROW])


def add_many(connection: Connection) -> None:
    ManyInsert(LETTERS, "name", "body", "note").run(connection, [ROW, ("two", b"x", "y")])


def set_row(connection: Connection) -> None:
    RowInsert(LETTERS, "name").run(connection, [("one",)])
    RowUpdate(LETTERS, "name").later(connection, "one", note=ROW[2], body=ROW[1])


def set_by_statement(connection: Connection) -> None:
    RowInsert(LETTERS, "name").run(connection, [("one",)])
    values = {"body": sa.bindparam("its_body"), "note": ROW[2]}
    statement = sa.update(LETTERS).where(LETTERS.c.name == sa.bindparam("of_name")).values(**values)
    Update(statement).run(connection, {"of_name": "one", "its_body": ROW[1]})


def add_by_library(connection: Connection) -> None:
    connection.execute(sa.insert(LETTERS).values(name=ROW[0], body=ROW[1], note=ROW[2]))


@pytest.mark.parametrize("write", [add, add_later, add_many, set_row, set_by_statement, add_by_library])
def test_whatever_writes_a_value_it_is_sealed_and_whatever_reads_it_opens_it(
    database: Database, write: Callable[[Connection], None]
) -> None:
    database.write_sync(write)
    (name, body, note), *_ = stored(database)
    assert name == "one"
    assert b"heron" not in bytes(body)
    assert "lantern" not in note
    library = sa.select(LETTERS).where(LETTERS.c.name == "one")
    assert tuple(database.read_sync(lambda c: c.execute(library).one())) == ROW
    assert tuple(database.read_sync(lambda c: ALL.all(c, {}))[0]) == ROW
    assert tuple(database.read_sync(lambda c: list(ALL.each(c, {})))[0]) == ROW
    gone = Change(sa.delete(LETTERS).where(LETTERS.c.name == "one").returning(LETTERS.c.note))
    assert database.write_sync(lambda c: gone.one(c, {})) == (ROW[2],)


def test_nothing_stays_nothing_and_a_value_in_clear_is_read_and_found(database: Database) -> None:
    rows = [("a", None, None), ("b", b"", "")]
    database.write_sync(lambda c: RowInsert(LETTERS, "name", "body", "note").run(c, rows))
    assert stored(database) == rows
    old = sa.text("INSERT INTO letters VALUES ('c', :body, 'plain')")
    database.write_sync(lambda c: c.execute(old, {"body": b"plain"}))
    database.write_sync(add)
    assert database.read_sync(lambda c: [tuple(row) for row in ALL.all(c, {})][2]) == ("c", b"plain", "plain")
    for column in (LETTERS.c.body, LETTERS.c.note):
        clear = sa.select(LETTERS.c.name).where(in_clear(column))
        assert database.read_sync(lambda c, clear=clear: list(c.scalars(clear))) == ["c"]


def test_a_value_that_was_moved_or_sealed_under_another_key_is_lost_and_not_shown(database: Database) -> None:
    database.write_sync(add)
    seal_under(database, Box(secrets.token_bytes(32)))
    for column in (LETTERS.c.body, LETTERS.c.note):
        with pytest.raises(DataLoss, match="restore the key file"):
            database.read_sync(lambda c, column=column: c.execute(sa.select(column)).all())


def test_without_a_key_nothing_is_written_in_clear(tmp_path: Path) -> None:
    database = Database(f"sqlite:///{tmp_path / 'letters.db'}")
    LETTERS.metadata.create_all(database.engine)
    with pytest.raises(RuntimeError, match="no key"):
        database.write_sync(add)
    assert stored(database) == []
    database.close()
