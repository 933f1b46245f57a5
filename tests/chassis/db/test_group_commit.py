"""Writes that wait for concurrent calls to share a commit, on a real SQLite file with a controlled call count."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest
import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.jobs import Job, JobQueue

rows = sa.table("rows", sa.column("id"))


class Watched:
    """A database whose company is a number, and whose commits are counted."""

    def __init__(self, folder: Path) -> None:
        self.company, self.commits = 1, 0
        self.database = Database(f"sqlite:///{folder / 'x.db'}", company=lambda: self.company)
        self.database.write_sync(lambda connection: connection.execute(sa.text("CREATE TABLE rows (id INTEGER)")))
        sa.event.listen(self.database.engine, "commit", self._count)

    def _count(self, _connection: object) -> None:
        self.commits += 1

    async def write(self, key: int) -> None:
        await self.database.write(lambda connection: connection.execute(sa.insert(rows).values(id=key)))

    async def write_three(self) -> None:
        """Three calls write together; then there is one again."""
        self.company = 3
        await asyncio.wait_for(asyncio.gather(*(self.write(key) for key in (1, 2, 3))), 60)
        self.company = 1

    def kept(self) -> list[int]:
        return self.database.read_sync(lambda one: list(one.execute(sa.select(rows.c.id).order_by("id")).scalars()))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    made = Watched(tmp_path)
    yield made
    made.database.close()


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a write wait for those it expects as long as it takes."""
    for name in ("_COMPANY_SECONDS", "_LONGEST_SECONDS"):
        monkeypatch.setattr(f"phylactery_chassis.db.database.{name}", 3_600)


@pytest.mark.usefixtures("patient")
async def test_a_write_alone_waits_for_nobody(watched: Watched):
    await asyncio.wait_for(watched.write(1), 60)
    assert watched.commits == 1
    assert watched.kept() == [1]


async def test_a_write_alone_is_with_the_writer_before_the_loop_turns(watched: Watched):
    written = threading.Event()
    writing = watched.database.write(lambda _connection: written.set())
    waiter = writing.send(None)  # as far as a task goes in one turn
    assert written.wait(60)
    await asyncio.wait_for(waiter, 60)
    writing.close()


@pytest.mark.usefixtures("patient")
async def test_writes_of_calls_that_run_at_once_share_a_commit(watched: Watched):
    watched.company = 3

    async def later(turns: int, key: int) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await watched.write(key)

    await asyncio.wait_for(asyncio.gather(later(0, 1), later(5, 2), later(20, 3)), 60)
    assert watched.commits == 1
    assert watched.kept() == [1, 2, 3]


@pytest.mark.usefixtures("patient")
async def test_writes_wait_for_as_many_as_came_together_last(watched: Watched):
    """A call that was not begun yet is counted nowhere, and where there were three there will be three again."""
    await watched.write_three()
    first = asyncio.create_task(watched.write(4))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not first.done()
    await asyncio.wait_for(asyncio.gather(first, watched.write(5), watched.write(6)), 60)
    assert watched.commits == 2
    assert watched.kept() == [1, 2, 3, 4, 5, 6]


async def test_who_is_alone_again_waits_once_for_those_who_have_gone(watched: Watched):
    await watched.write_three()
    await asyncio.wait_for(watched.write(4), 60)
    waiting = watched.database._waiting[asyncio.get_running_loop()]
    assert waiting.usual == 1
    await asyncio.wait_for(watched.write(5), 60)
    assert watched.commits == 3


async def test_company_that_never_comes_is_not_waited_for(watched: Watched):
    watched.company = 100
    await asyncio.wait_for(watched.write(1), 60)
    assert watched.kept() == [1]


async def test_what_comes_while_the_writer_writes_is_its_next_commit(watched: Watched):
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_connection: sa.Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(60)

    first = asyncio.create_task(watched.database.write(slow))
    await asyncio.wait_for(begun.wait(), 60)
    others = [asyncio.create_task(watched.write(key)) for key in (1, 2)]
    await asyncio.sleep(0)
    others.append(asyncio.create_task(watched.write(3)))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.wait_for(asyncio.gather(first, *others), 60)
    assert watched.commits == 2
    assert watched.kept() == [1, 2, 3]


async def test_a_write_nobody_waits_for_any_more_holds_up_none_after_it(watched: Watched):
    begun, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(_connection: sa.Connection) -> None:
        loop.call_soon_threadsafe(begun.set)
        assert go_on.wait(60)

    given_up = asyncio.create_task(watched.database.write(slow))
    await asyncio.wait_for(begun.wait(), 60)
    given_up.cancel()
    waits = asyncio.create_task(watched.write(1))
    await asyncio.sleep(0)
    waits.cancel()
    go_on.set()
    await asyncio.wait_for(watched.write(2), 60)
    assert 2 in watched.kept()


@pytest.mark.usefixtures("patient")
async def test_closing_writes_what_waits_for_company(watched: Watched):
    watched.company = 2
    waits = asyncio.create_task(watched.write(1))
    for _ in range(5):
        await asyncio.sleep(0)
    assert not waits.done()
    await asyncio.to_thread(watched.database.close)
    await asyncio.wait_for(waits, 60)


def test_a_group_that_took_long_is_followed_by_smaller_ones_until_they_do_not(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("phylactery_chassis.db.jobs.time.monotonic", lambda: now[0])
    queue = JobQueue(short=True)
    queue.put([Job(lambda _connection: None, Future()) for _ in range(40)])
    sizes: list[int] = []
    for group, seconds in zip(queue.groups(), (9.0, 9.0, 9.0, 0.1, 0.1, 0.1, 0.1), strict=False):
        sizes.append(len(group))
        now[0] += seconds
        if len(sizes) == 1:
            queue.put([Job(lambda _connection: None, Future()) for _ in range(60)])
            queue.end()
    assert sizes == [40, 20, 10, 5, 10, 15]


async def test_a_file_whose_disk_is_slow_still_takes_all_that_waits_in_one_transaction(tmp_path: Path, monkeypatch):
    monkeypatch.setattr("phylactery_chassis.db.jobs._LONG_SECONDS", -1.0)
    database = Database(f"sqlite:///{tmp_path / 'x.db'}")
    commits: list[sa.Connection] = []
    for _ in range(3):
        await database.write(lambda connection: connection.execute(sa.text("SELECT 1")).scalar())
    sa.event.listen(database._write_engine, "commit", commits.append)
    await asyncio.gather(*(database.write(lambda connection: connection.info) for _ in range(20)))
    await asyncio.to_thread(database.close)
    assert len(commits) == 1
