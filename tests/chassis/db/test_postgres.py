"""The database layer on PostgreSQL: the same code, the same guarantees."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.jobs import Work
from phylactery_chassis.errors import CommitUnknown, Unavailable

from tests.support.servers.postgres import create_database

SERVICES = ("phylactery_riskgate", "phylactery_memory", "phylactery_agent")


@pytest.mark.parametrize("package", SERVICES)
def test_the_migrations_make_the_same_tables_on_both_stores(postgres_url: str, tmp_path, package: str):
    importlib.import_module(package)
    on_postgres = Database(create_database(postgres_url, f"{package}_tables"))
    on_sqlite = Database(f"sqlite:///{tmp_path / 'x.db'}")
    try:
        found = []
        for database in (on_postgres, on_sqlite):
            database.migrate(package)
            inspector = sa.inspect(database.engine)
            found.append({t: sorted(c["name"] for c in inspector.get_columns(t)) for t in inspector.get_table_names()})
        assert found[0] == found[1]
        assert len(found[0]) > 2
    finally:
        on_postgres.close()
        on_sqlite.close()


def test_four_starts_at_once_migrate_once_and_all_succeed(postgres_url: str):
    url = create_database(postgres_url, "four_starts")
    databases = [Database(url) for _ in range(4)]
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda database: database.migrate("phylactery_memory"), databases))
        assert "messages_v2" in sa.inspect(databases[0].engine).get_table_names()
    finally:
        for database in databases:
            database.close()


async def test_a_failing_work_rolls_back_itself_and_not_its_neighbours_on_postgresql(postgres_url: str):
    database = Database(create_database(postgres_url, "savepoints"))
    rows = sa.table("rows", sa.column("id"))
    try:
        await database.write(lambda c: c.execute(sa.text("CREATE TABLE rows (id BIGINT PRIMARY KEY)")).rowcount)
        insert = lambda key: lambda c: c.execute(sa.insert(rows).values(id=key)).rowcount  # noqa: E731 - two words twice
        results = await asyncio.gather(
            database.write(insert(1)), database.write(insert(1)), database.write(insert(2)), return_exceptions=True
        )
        assert [type(result).__name__ for result in results] == ["int", "IntegrityError", "int"]
        count = await database.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one())
        assert count == 2
    finally:
        database.close()


async def test_where_the_answer_of_a_commit_is_lost_nobody_is_told_that_nothing_changed(postgres_url: str):
    database = Database(create_database(postgres_url, "lost_answers"))
    kill = sa.text("SELECT pg_terminate_backend(pg_backend_pid())")

    def insert(key: int) -> Work[int]:
        return lambda connection: connection.execute(sa.text(f"INSERT INTO rows VALUES ({key})")).rowcount

    def killed_at_the_statement(connection: sa.Connection) -> int:
        insert(1)(connection)
        return connection.execute(kill).rowcount

    def killed_at_the_commit(connection: sa.Connection) -> int:
        pid = connection.execute(sa.text("SELECT pg_backend_pid()")).scalar_one()

        def kill_it(_connection: sa.Connection) -> None:
            with database.engine.connect() as other:
                assert other.execute(sa.text(f"SELECT pg_terminate_backend({pid}, 60000)")).scalar_one()

        sa.event.listen(connection, "commit", kill_it)
        return insert(2)(connection)

    def killed_after_the_commit(connection: sa.Connection) -> int:
        raw: Any = connection.connection.dbapi_connection

        def lose() -> None:
            type(raw).commit(raw)
            raw.execute("SELECT pg_terminate_backend(pg_backend_pid())")

        raw.commit = lose
        return insert(3)(connection)

    try:
        await database.write(lambda c: c.execute(sa.text("CREATE TABLE rows (id BIGINT PRIMARY KEY)")).rowcount)
        for work, kind, told in (
            (killed_at_the_statement, Unavailable, "nothing changed"),
            (killed_at_the_commit, CommitUnknown, "outcome is unknown"),
            (killed_after_the_commit, CommitUnknown, "outcome is unknown"),
        ):
            with pytest.raises(Unavailable, match=told) as caught:
                await database.write(work)
            assert (type(caught.value), caught.value.reason) == (kind, "STORE_UNAVAILABLE")
        assert await database.probe()
        kept = await database.read(lambda c: c.scalars(sa.text("SELECT id FROM rows")).all())
        assert kept == [3]
    finally:
        database.close()


async def test_a_store_that_is_down_is_unavailable():
    database = Database("postgresql+psycopg://nobody@/none?host=/nonexistent-socket-folder")
    try:
        with pytest.raises(Unavailable) as caught:
            await database.write(lambda c: c.execute(sa.text("SELECT 1")).scalar())
        assert caught.value.reason == "STORE_UNAVAILABLE"
        assert not database.healthy
    finally:
        database.close()
