"""The writer thread on real SQLite files: durable answers, savepoints, failing commits."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.migrations import SchemaError
from phylactery_chassis.db.scrub import forget_log
from phylactery_chassis.errors import CommitUnknown, FailedPrecondition, StoreFull, Unavailable
from phylactery_chassis.telemetry import logs

from tests.support.databases.power import Disk

FIRST = """
import sqlalchemy as sa
from alembic import op
revision = "0001"
down_revision = None
def upgrade():
    op.create_table("rows", sa.Column("id", sa.BigInteger, primary_key=True), sa.Column("body", sa.LargeBinary))
"""
rows = sa.table("rows", sa.column("id"), sa.column("body"))


def make_package(folder: Path, name: str) -> Path:
    versions = folder / name / "migrations" / "versions"
    versions.mkdir(parents=True)
    (folder / name / "__init__.py").write_text("")
    (versions / "0001_first.py").write_text(FIRST)
    return versions


@pytest.fixture
def package(tmp_path: Path, monkeypatch, request) -> Iterator[str]:
    name = f"package_{abs(hash(request.node.name))}"
    make_package(tmp_path / "code", name)
    monkeypatch.syspath_prepend(str(tmp_path / "code"))
    yield name
    sys.modules.pop(name, None)


@pytest.fixture
def db(tmp_path: Path, package: str) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    database.migrate(package)
    yield database
    database.close()


def insert(key: int):
    return lambda connection: connection.execute(sa.insert(rows).values(id=key, body=b"x")).rowcount


def count(connection: sa.Connection) -> int:
    return connection.execute(sa.select(sa.func.count()).select_from(rows)).scalar_one()


async def test_a_write_is_seen_by_another_connection_once_it_is_answered(db: Database, tmp_path: Path):
    await db.write(insert(1))
    with sqlite3.connect(tmp_path / "x.db") as other:
        assert other.execute("SELECT count(*) FROM rows").fetchone() == (1,)


async def test_a_failing_work_rolls_back_itself_and_not_its_neighbours(db: Database):
    def half(connection: sa.Connection) -> None:
        insert(100)(connection)
        raise FailedPrecondition("CONFLICT", "no")

    results = await asyncio.gather(db.write(insert(1)), db.write(half), db.write(insert(2)), return_exceptions=True)
    assert results[0] == results[2] == 1
    assert isinstance(results[1], FailedPrecondition)
    assert await db.read(count) == 2


async def test_works_written_together_are_answered_in_order_each_with_its_result_or_what_it_raised(db: Database):
    def half(connection: sa.Connection) -> None:
        insert(100)(connection)
        raise FailedPrecondition("CONFLICT", "no")

    commits: list[sa.Connection] = []
    sa.event.listen(db._write_engine, "commit", commits.append)
    first, failed, counted, taken = await db.write_all([insert(1), half, count, insert(1)])
    assert (first, counted, len(commits)) == (1, 1, 1)
    assert isinstance(failed, FailedPrecondition)
    assert isinstance(taken, sa.exc.IntegrityError)
    assert await db.read(count) == 1
    assert await db.write_all([]) == []


async def test_works_written_together_are_all_told_that_the_store_failed(db: Database):
    db.engine.dispose()
    sa.event.listen(db._write_engine, "commit", _no_disk)
    failed = await db.write_all([insert(1), insert(2)])
    assert [type(one) for one in failed] == [CommitUnknown, CommitUnknown]
    sa.event.remove(db._write_engine, "commit", _no_disk)
    assert await db.read(count) == 0


def _no_disk(_connection: sa.Connection) -> None:
    raise sa.exc.OperationalError("", None, sqlite3.OperationalError("disk I/O error"))


async def test_works_that_nobody_waits_for_any_more_are_not_begun(db: Database):
    begun = asyncio.ensure_future(db.write_all([insert(1), insert(2)]))
    await asyncio.sleep(0)  # it waits for the end of this turn
    begun.cancel()
    assert await db.write(count) == 0
    assert await db.read(count) == 0


async def test_a_taken_key_is_the_works_own_error(db: Database):
    await db.write(insert(1))
    with pytest.raises(sa.exc.IntegrityError):
        await db.write(insert(1))
    assert db.healthy


async def test_an_error_text_of_the_store_holds_no_value(db: Database):
    await db.write(insert(1))
    with pytest.raises(sa.exc.IntegrityError) as caught:
        await db.write(lambda c: c.execute(sa.insert(rows).values(id=1, body=b"do-not-show")))
    assert "do-not-show" not in str(caught.value)


async def test_a_full_disk_is_said_to_be_one_and_nothing_changed_and_it_recovers(db: Database):
    def limit(pages: int) -> None:
        with db.engine.connect() as connection:
            connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")

    big = sa.insert(rows).values(id=1, body=b"x" * 1_000_000)
    await db.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=20"))
    with pytest.raises(StoreFull) as caught:
        await db.write(lambda c: (c.exec_driver_sql("PRAGMA max_page_count=20"), c.execute(big)))
    assert (caught.value.code, caught.value.reason) == ("RESOURCE_EXHAUSTED", "STORE_FULL")
    assert not db.healthy
    assert await db.read(count) == 0
    await db.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1000000"))
    assert await db.probe()
    await db.write(lambda c: (c.exec_driver_sql("PRAGMA max_page_count=1000000"), c.execute(big))[1].rowcount)
    assert await db.read(count) == 1


async def test_a_full_store_is_not_healthy_until_it_takes_writes_again(db: Database):
    def full(_connection: sa.Connection) -> None:
        raise StoreFull

    sa.event.listen(db.engine, "begin", full)
    assert not await db.probe()
    sa.event.remove(db.engine, "begin", full)
    assert await db.probe()


async def test_a_failure_between_a_probes_write_and_its_answer_is_not_forgotten(db: Database):
    def fill(connection: sa.Connection) -> None:
        connection.exec_driver_sql("PRAGMA max_page_count=20")
        connection.execute(sa.insert(rows).values(id=1, body=b"x" * 1_000_000))

    with pytest.raises(StoreFull):
        await db.write(fill)
    await db.write(lambda c: c.exec_driver_sql("PRAGMA max_page_count=1000000").scalar())
    probe = asyncio.create_task(db.probe())
    for _ in range(3):  # its write is with the writer now
        await asyncio.sleep(0)
    with pytest.raises(StoreFull):
        db.write_sync(fill)  # this loop hears of nothing before it has failed
    assert not await probe
    assert not db.healthy


async def test_a_failing_commit_answers_every_waiter_even_where_it_cannot_be_logged(db: Database, monkeypatch):
    def fail(_connection: sa.Connection) -> None:
        raise sa.exc.OperationalError("", None, sqlite3.OperationalError("disk I/O error"))

    class FullDisk:
        def write(self, _text: str) -> int:
            raise OSError(28, "No space left on device")

        def flush(self) -> None:
            raise OSError(28, "No space left on device")

    logs.configure("test")
    with monkeypatch.context() as patch:
        patch.setattr("sys.stderr", FullDisk())
        answers = asyncio.gather(*(db.write(fail) for _ in range(3)), return_exceptions=True)
        assert [type(one) for one in await asyncio.wait_for(answers, 60)] == [Unavailable] * 3
    assert await db.write(insert(1)) == 1


async def test_after_close_a_write_is_unavailable_instead_of_hanging(db: Database):
    await db.write(insert(1))
    db.close()
    assert not db.healthy
    with pytest.raises(Unavailable):
        await db.write(insert(2))


async def test_a_quick_read_sees_what_was_answered_before_it_and_holds_up_no_checkpoint(db: Database):
    for key in range(1, 4):
        await db.write(insert(key))
        assert await db.read_quickly(count) == key
        assert await forget_log(db)


async def test_a_quick_read_that_fails_leaves_the_next_ones_and_the_writer_alone(db: Database):
    def fail(connection: sa.Connection) -> None:
        count(connection)
        raise FailedPrecondition("CONFLICT", "no")

    await db.write(insert(1))
    with pytest.raises(FailedPrecondition):
        await db.read_quickly(fail)
    with pytest.raises(Unavailable):
        await db.read_quickly(lambda connection: connection.execute(sa.text("SELECT * FROM nowhere")))
    await db.write(insert(2))
    assert await db.read_quickly(count) == 2


async def test_a_quick_read_that_answers_what_nobody_read_to_its_end_is_refused_and_holds_up_no_checkpoint(
    db: Database,
):
    await db.write(insert(1))
    await db.write(insert(2))
    with pytest.raises(TypeError, match="answers rows"):
        await db.read_quickly(lambda connection: connection.execute(sa.select(rows)))
    await db.write(insert(3))
    assert await forget_log(db)


async def test_quick_reads_of_several_threads_take_turns(db: Database):
    await db.write(insert(1))
    inside: list[int] = []

    def look(connection: sa.Connection) -> int:
        inside.append(1)
        assert len(inside) == 1
        found = count(connection)
        inside.pop()
        return found

    def many() -> list[int]:
        async def ask() -> list[int]:
            return [await db.read_quickly(look) for _ in range(50)]

        return asyncio.run(ask())

    answers = await asyncio.gather(*(asyncio.to_thread(many) for _ in range(4)))
    assert answers == [[1] * 50] * 4


async def test_after_close_a_quick_read_is_unavailable_and_opens_nothing(db: Database):
    assert await db.read_quickly(count) == 0
    db.close()
    with pytest.raises(Unavailable, match="closed"):
        await db.read_quickly(count)
    assert db.engine.pool.checkedout() == 0


async def test_writes_waiting_at_close_are_still_done(db: Database):
    waiting = [asyncio.create_task(db.write(insert(i))) for i in range(50)]
    await asyncio.sleep(0)
    await asyncio.get_running_loop().run_in_executor(None, db.close)
    assert sum(await asyncio.gather(*waiting)) == 50


async def test_sqlite_is_durable_and_forgets_what_is_deleted(db: Database):
    def pragmas(connection: sa.Connection) -> tuple[object, ...]:
        return tuple(
            connection.exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "synchronous", "foreign_keys", "secure_delete")
        )

    assert await db.write(pragmas) == ("wal", 2, 1, 1)


async def test_the_log_of_a_file_grows_as_long_as_whoever_opens_it_says(tmp_path: Path):
    database = Database(f"sqlite:///{tmp_path / 'x.db'}", log_pages=3)
    try:
        await database.write(lambda connection: connection.exec_driver_sql("CREATE TABLE t (b BLOB)"))
        for _ in range(20):
            await database.write(lambda connection: connection.exec_driver_sql("INSERT INTO t VALUES (zeroblob(9000))"))
        longest = (tmp_path / "x.db-wal").stat().st_size
    finally:
        await asyncio.to_thread(database.close)
    assert longest < 20 * 9000


def test_migrating_twice_changes_nothing(db: Database, package: str):
    db.migrate(package)
    assert db.read_sync(count) == 0


def test_an_old_schema_is_refused_when_it_may_not_be_migrated(tmp_path: Path, package: str):
    database = Database(f"sqlite:///{tmp_path / 'old.db'}")
    with pytest.raises(SchemaError, match=rf"python -m {package} migrate"):
        database.migrate(package, apply=False)
    database.close()


def test_a_newer_schema_is_refused(db: Database, package: str):
    db.write_sync(lambda c: c.exec_driver_sql(f"UPDATE {package}_version SET version_num='9999'").rowcount)
    with pytest.raises(SchemaError, match="newer"):
        db.migrate(package)


async def test_after_a_full_disk_health_is_back_once_a_write_is_taken_and_not_before(tmp_path: Path, package: str):
    disk = Disk(f"full-{tmp_path.name}")
    database = Database(f"sqlite+power:///{tmp_path / 'x.db'}?disk={disk.name}")
    try:
        database.migrate(package)
        assert await forget_log(database)  # so that every page it writes takes room
        disk.room = 0
        with pytest.raises(StoreFull):
            await database.write(insert(1))
        for _ in range(3):
            assert not await database.probe()
            assert not database.healthy
        disk.room = None
        assert await database.probe()
        assert database.healthy
        await database.write(insert(1))
    finally:
        database.close()
