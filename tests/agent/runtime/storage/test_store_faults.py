"""Temporary database failures in the middle of a turn: the turn waits, then continues exactly where it stopped."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import StatusCode, aio
from phylactery_chassis.util import crashpoints

from tests.agent.runtime.dispatch.test_replicas import Replicas, replicas_over
from tests.support.agent.system import DONE, Person, System, approval_of, open_system, refused
from tests.support.databases.invariants import at_rest, broken
from tests.support.databases.power import Disk
from tests.support.servers.postgres import create_database

APPEND = 'añade "línea" a lista.txt'


@pytest.fixture
def on_point() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Call a function the first time a crash point is reached."""

    def install(name: str, call: Callable[[], None]) -> None:
        waiting = [call]

        def reached(point: str) -> None:
            if point == name and waiting:
                waiting.pop()()

        crashpoints.install(reached)

    yield install
    crashpoints.install(None)


async def settled(url: str) -> None:
    async with asyncio.timeout(60):
        while not at_rest(url):  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.05)
    assert broken(url) == []


@pytest.mark.slow
@pytest.mark.parametrize("point", ["agent.claim", "agent.8", "agent.9"])
async def test_a_database_another_process_keeps_busy_delays_a_turn_and_its_effect_happens_once(
    system: System, ana: Person, on_point: Callable[[str, Callable[[], None]], None], point: str
) -> None:
    path = system.folder / "agent" / "agent.db"
    asked = await ana.say(APPEND)
    approval_id, code = approval_of(asked)
    other = sqlite3.connect(path, isolation_level=None)
    on_point(point, lambda: other.execute("BEGIN IMMEDIATE") and None)
    answer = asyncio.create_task(ana.say(f"APROBAR {approval_id} {code}"))
    async with asyncio.timeout(60):
        while not system.agent.runner._timers:  # noqa: ASYNC110 - the turn failed, and waits to be tried again
            await asyncio.sleep(0.05)
    other.execute("ROLLBACK")
    other.close()
    assert (await answer).run.status == DONE
    assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
    await settled(f"sqlite:///{path}")


class Refusing:
    """A database that takes no write for a while, for want of room or because it may only be read."""

    def __init__(self, system: System, disk: Disk, fault: str) -> None:
        self._database, self._disk, self._fault = system.agent.database, disk, fault
        self._reads_only = False
        sa.event.listen(self._database.engine, "checkout", self._taken)
        with self._database.engine.connect() as connection:  # so that whatever is written makes the log grow
            connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")

    def begin(self) -> None:
        if self._fault == "full":
            self._disk.room = 0
            return
        self._reads_only = True  # of whatever connection is taken from now on, and of the one the writer has
        self._database.write_sync(lambda connection: connection.exec_driver_sql("PRAGMA query_only=1") and None)

    def end(self) -> None:
        self._disk.room, self._reads_only = None, False

    def _taken(self, connection: Any, *_about: Any) -> None:
        connection.execute(f"PRAGMA query_only={int(self._reads_only)}")


@pytest.mark.slow
@pytest.mark.parametrize("point", ["agent.claim", "agent.8", "agent.9"])
@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("full", (StatusCode.RESOURCE_EXHAUSTED, "STORE_FULL")),
        ("read-only", (StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")),
    ],
)
async def test_a_database_that_takes_no_write_delays_a_turn_and_refuses_the_next_and_each_effect_happens_once(
    tmp_path: Path,
    on_point: Callable[[str, Callable[[], None]], None],
    point: str,
    fault: str,
    told: tuple[StatusCode, str],
) -> None:
    disk = Disk(f"below-{tmp_path.name}")
    url = f"sqlite+power:///{tmp_path / 'agent.db'}?disk={disk.name}"
    async with open_system(tmp_path, asks=True, database_url=url) as system:
        ana, ben = system.person("ana"), system.person("ben")
        approval_id, code = approval_of(await ana.say(APPEND))
        refusing = Refusing(system, disk, fault)
        on_point(point, refusing.begin)
        answer = asyncio.create_task(ana.say(f"APROBAR {approval_id} {code}", request_id="request-delayed"))
        async with asyncio.timeout(60):
            while not system.agent.runner._timers:  # noqa: ASYNC110 - the turn failed, and waits to be tried again
                await asyncio.sleep(0.05)
        with pytest.raises(aio.AioRpcError) as caught:
            await ben.say("repite hola", request_id="request-refused")
        refusal = refused(caught.value)
        assert (refusal.code, refusal.reason) == told
        assert not answer.done()
        refusing.end()
        assert (await ben.say("repite hola", request_id="request-refused")).reply.text == "hola"
        served = await answer
        assert served.run.status == DONE
        again = await ana.say(f"APROBAR {approval_id} {code}", request_id="request-delayed")
        assert again == served
        assert system.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
        await settled(url)


@pytest.mark.slow
async def test_turns_wait_for_a_connection_where_all_are_taken(tmp_path: Path, postgres_url: str) -> None:
    async with replicas_over(tmp_path, create_database(postgres_url, "agent_pool")) as replicas:
        await replicas.add()
        engine = replicas.agents[0].database.engine
        taken = [engine.connect() for _ in range(4)]
        answers = [asyncio.create_task(replicas.person(0).say(f"repite {n}", f"t{n}")) for n in range(20)]
        assert [(await answer).reply.text for answer in answers] == [str(n) for n in range(20)]
        for connection in taken:
            connection.close()
        await settled(replicas.url)


@pytest.mark.slow
async def test_the_same_message_again_and_again_at_two_agents_is_one_turn_and_another_one_under_its_name_is_refused(
    tmp_path: Path, postgres_url: str
) -> None:
    async with replicas_over(tmp_path, create_database(postgres_url, "agent_same")) as replicas:
        await replicas.add()
        await replicas.add()
        said = [_said(replicas, n, "repite hola" if n % 3 else "repite adiós") for n in range(9)]
        answers = await asyncio.gather(*said)
        told = {answer for answer in answers if answer != "ALREADY_EXISTS"}
        assert len(told) == 1
        assert "ALREADY_EXISTS" in answers
        assert replicas.rows("SELECT count(*) FROM agent_runs") == [(1,)]
        await settled(replicas.url)


async def _said(replicas: Replicas, number: int, text: str) -> str:
    try:
        answer = await replicas.person(number % 2).say(text, request_id="request-the-same")
    except aio.AioRpcError as error:
        return error.code().name
    return f"{answer.run.id} {answer.reply.text}"
