"""The database refuses for a while in the middle of a turn: the turn waits, and goes on exactly where it stood."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from grpc import aio
from phylactery_chassis import crashpoints

from tests.agent.test_agent_replicas import Replicas, replicas_over
from tests.support.agent_system import DONE, Person, System, approval_of
from tests.support.invariants import at_rest, broken
from tests.support.postgres import create_database

APPEND = 'añade "línea" a lista.txt'


@pytest.fixture
def on_point() -> Iterator[Callable[[str, Callable[[], None]], None]]:
    """Calls a function the first time a crash point is reached."""

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
