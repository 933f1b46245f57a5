"""Round trips to a database server, and recovery from connections it closed."""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.pending_statements import run_text
from phylactery_chassis.db.statements import ManyInsert, Query, RowInsert, RowUpdate, Update
from phylactery_chassis.errors import StartError, Unavailable
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from tests.support.databases.round_trips import Counted, counted
from tests.support.servers.postgres import create_database

ROWS = sa.Table(
    "rows", sa.MetaData(), sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("word", sa.String(9))
)
RENAME = Update(sa.update(ROWS).where(ROWS.c.id == sa.bindparam("of")).values(word=sa.bindparam("now")))
ADD, SET, ALL = RowInsert(ROWS, "id", "word"), RowUpdate(ROWS, "id"), Query(sa.select(ROWS).order_by(ROWS.c.id))


class Far:
    """A database behind a socket that counts."""

    def __init__(self, url: str, database: Database, counts: Counted) -> None:
        self.url, self.database, self.counts = url, database, counts

    async def words(self) -> list[tuple[int, str]]:
        return await self.database.read(lambda c: [tuple(row) for row in ALL.all(c, {})], one=True)

    def end_sessions(self) -> None:
        """End every session of the database, as a restart does, and wait until they are gone."""
        with psycopg.connect(self.url.replace("+psycopg", ""), autocommit=True) as other:
            other.execute(
                "SELECT pg_terminate_backend(pid, 20000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )


@pytest.fixture
async def far(postgres_url: str) -> AsyncIterator[Far]:
    url = create_database(postgres_url, new_id("trips"))
    folder = str(sa.make_url(url).query["host"])
    with tempfile.TemporaryDirectory(prefix="phylactery-trips-") as near, counted(Path(folder), Path(near)) as counts:
        database = Database(url.replace(folder, near))
        try:
            await database.write(ROWS.create)
            await database.write(lambda c: ADD.run(c, [(1, "one")]))
            one = Far(url, database, counts)
            assert await one.words() == [(1, "one")]
            yield one
        finally:
            await asyncio.to_thread(database.close)


async def test_a_read_of_one_statement_is_one_question(far: Far) -> None:
    far.counts.reset()
    await far.words()
    assert far.counts.round_trips == 1, far.counts.said


async def test_a_write_is_as_many_questions_as_it_has_answers_to_wait_for_and_its_commit(far: Far) -> None:
    def work(connection: Connection) -> None:
        assert ALL.one(connection, {}) is not None
        ADD.later(connection, [(2, "two"), (3, "three"), (4, "four")])
        SET.later(connection, 1, word="first")
        SET.later(connection, 2, word="second")

    far.counts.reset()
    await far.database.write(work)
    assert far.counts.round_trips <= 3, far.counts.said  # seven where each goes by itself
    assert await far.words() == [(1, "first"), (2, "second"), (3, "three"), (4, "four")]


async def test_what_was_said_later_is_there_for_whoever_asks_in_the_same_transaction(far: Far) -> None:
    def work(connection: Connection) -> list[str]:
        ADD.later(connection, [(2, "two")])
        by_query = [row.word for row in ALL.all(connection, {})]
        SET.later(connection, 2, word="second")
        return [*by_query, *connection.scalars(sa.select(ROWS.c.word).order_by(ROWS.c.id))]

    assert await far.database.write(work) == ["one", "two", "one", "second"]


async def test_a_key_that_is_taken_is_told_to_whoever_left_it_to_be_said_later(far: Far) -> None:
    await far.database.write(lambda c: ADD.later(c, [(2, "two")]))
    with pytest.raises(sa.exc.IntegrityError):
        await far.database.write(lambda c: ADD.later(c, [(2, "again")]))
    assert far.database.healthy
    outcomes = await asyncio.gather(
        *(far.database.write(lambda c, key=key: ADD.later(c, [(key, "more")])) for key in (3, 2, 4)),
        return_exceptions=True,
    )
    assert [type(outcome).__name__ for outcome in outcomes] == ["NoneType", "IntegrityError", "NoneType"]
    assert await far.words() == [(1, "one"), (2, "two"), (3, "more"), (4, "more")]


async def test_sessions_the_server_ended_are_opened_anew_and_what_was_asked_is_done_once(far: Far) -> None:
    await asyncio.gather(*(far.words() for _ in range(8)))  # several connections, each as old as the next
    await asyncio.to_thread(far.end_sessions)
    assert await far.words() == [(1, "one")]
    await asyncio.to_thread(far.end_sessions)
    await far.database.write(lambda c: ADD.run(c, [(2, "two")]))
    await asyncio.to_thread(far.end_sessions)
    await far.database.write(lambda c: ADD.later(c, [(3, "three")]))
    await asyncio.to_thread(far.end_sessions)
    count = sa.select(sa.func.count()).select_from(ROWS)
    assert await far.database.read(lambda c: [c.execute(count).scalar_one(), len(ALL.all(c, {}))]) == [3, 3]
    assert await far.words() == [(1, "one"), (2, "two"), (3, "three")]
    assert far.database.healthy


async def test_what_is_said_later_is_what_was_given_whatever_becomes_of_it_meanwhile(far: Far) -> None:
    def work(connection: Connection) -> None:
        values = {"of": 1, "now": "first"}
        RENAME.later(connection, values)
        values.update(of=2, now="other")

    await far.database.write(work)
    assert await far.words() == [(1, "first")]


async def test_a_second_error_of_what_goes_together_tells_no_log_the_values_of_a_row(
    far: Far, caplog: pytest.LogCaptureFixture
) -> None:
    def work(connection: Connection) -> None:
        ADD.later(connection, [(1, "one")])  # taken: the server's words tell the key
        run_text(connection, "SELECT %s", [object()])

    with pytest.raises(sa.exc.ProgrammingError):
        await far.database.write(work)
    assert caplog.text == ""
    assert await far.words() == [(1, "one")]


def test_a_driver_that_cannot_say_several_things_at_once_is_told_at_the_start(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(psycopg.Pipeline, "is_supported", lambda: False)
    monkeypatch.setattr(psycopg.pq, "version", lambda: 130_012)
    database = Database(postgres_url.format(database="postgres"))
    try:
        with pytest.raises(
            StartError, match=r"psycopg runs on libpq 13 here.*need 14 or later; install psycopg\[binary\]"
        ):
            database.migrate("phylactery_memory")
    finally:
        database.close()


async def test_a_session_that_ends_in_the_middle_of_a_write_undoes_it_and_is_not_hidden(far: Far) -> None:
    runs = []

    def work(connection: Connection) -> None:
        runs.append(ALL.all(connection, {}))
        far.end_sessions()
        ADD.run(connection, [(2, "two")])

    with pytest.raises(Exception, match="did not take it"):
        await far.database.write(work)
    assert len(runs) == 1
    assert await far.words() == [(1, "one")]


@pytest.mark.parametrize("kept", [False, True])
async def test_where_the_answer_of_a_commit_that_went_with_what_waited_is_lost_nobody_says_that_nothing_changed(
    far: Far, kept: bool
) -> None:
    def work(connection: Connection) -> None:
        raw = connection.connection.dbapi_connection
        assert isinstance(raw, psycopg.Connection)
        assert ALL.one(connection, {}) is not None
        if not kept:
            far.end_sessions()
        else:
            loses_its_answers(raw)
        ADD.later(connection, [(2, "two")])

    with pytest.raises(Unavailable, match="outcome is unknown"):
        await far.database.write(work)
    assert await far.words() == [(1, "one"), *([(2, "two")] if kept else [])]


def loses_its_answers(raw: psycopg.Connection[Any]) -> None:
    """Have the session end once the server did what goes together next, before anybody hears of it."""
    pipeline = raw.pipeline

    @contextlib.contextmanager
    def lost() -> Iterator[psycopg.Pipeline]:
        with pipeline() as together:
            yield together
        raw.autocommit = True
        raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    raw.pipeline = lost  # type: ignore[method-assign]


async def test_many_rows_are_one_statement_of_a_server_whatever_their_number(far: Far) -> None:
    add = ManyInsert(ROWS, "id", otherwise="ON CONFLICT DO NOTHING", found={"word": "'w' || given.id"})
    for first, count in ((2, 2), (2, 70), (72, 3), (75, 5)):
        far.counts.reset()
        await far.database.write(lambda c, first=first, count=count: add.later(c, [(first + n,) for n in range(count)]))
        assert far.counts.said["bind"] == 2, far.counts.said  # its BEGIN, and all rows
    assert await far.words() == [(1, "one"), *((n, f"w{n}") for n in range(2, 80))]


@pytest.mark.parametrize("count", [1, 2])
async def test_a_text_too_long_for_its_column_is_refused_and_not_cut_off_however_many_rows_come(
    far: Far, count: int
) -> None:
    rows = [(2, "w" * 10), (3, "w")][:count]
    with pytest.raises(sa.exc.DataError):
        await far.database.write(lambda c: ManyInsert(ROWS, "id", "word").later(c, rows))
    assert await far.words() == [(1, "one")]
