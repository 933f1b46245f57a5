"""Several complete agents over one PostgreSQL database and one folder, each with its own port."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from grpc import aio
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_agent.app import Agent, build_agent
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.named_folders import person_folder
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.server import start

from tests.support.agent.stores import opened
from tests.support.agent.system import DONE, SUSPENDED, Person, System, approval_of, open_system
from tests.support.clock import FakeClock
from tests.support.servers.postgres import brief_database

ENDS_SECONDS = 60


class Replicas:
    """The services with agents over one PostgreSQL database."""

    def __init__(self, system: System, url: str, stack: AsyncExitStack) -> None:
        self.system, self.url, self._stack = system, url, stack
        self.agents: list[Agent] = []
        self.channels: list[aio.Channel] = []

    async def add(self, *, clock: FakeClock | None = None, **options: Any) -> int:
        """Start another agent and return its number."""
        settings = AgentSettings(
            **{
                "data_dir": self.system.folder / "shared",
                "database_url": self.url,
                "port": 0,
                "drain_seconds": 0,
                "riskgate_target": self.system.target("riskgate"),
                "memory_target": self.system.target("memory"),
                "approval_poll_seconds": 0.2,
                "retry_seconds": 0.05,
                **options,
            }
        )
        agent = await build_agent(settings, clock=clock or self.system.clock)
        server = await start(agent.service, settings)
        self._stack.push_async_callback(server.stop)
        channel = aio.insecure_channel(f"127.0.0.1:{server.port}")
        self._stack.push_async_callback(channel.close)
        self.agents.append(agent)
        self.channels.append(channel)
        return len(self.agents) - 1

    def person(self, number: int, subject: str = "ana") -> Person:
        """Return somebody who talks to one of the agents."""
        return self.system.through(self.channels[number], self.system.person(subject))

    @property
    def sandbox(self) -> Path:
        return person_folder(self.system.folder / "shared" / "sandbox", "acme", "ana")

    def rows(self, text: str) -> list[Any]:
        return self.agents[0].database.read_sync(lambda connection: list(connection.execute(sa.text(text))))


@asynccontextmanager
async def replicas_over(folder: Path, url: str) -> AsyncIterator[Replicas]:
    database = opened(url)
    try:
        await asyncio.to_thread(database.migrate, "phylactery_agent")
    finally:
        database.close()
    async with open_system(folder, asks=True) as system, AsyncExitStack() as stack:
        yield Replicas(system, url, stack)


@pytest.fixture
async def replicas(tmp_path: Path, postgres_url: str) -> AsyncIterator[Replicas]:
    async with replicas_over(tmp_path, brief_database(postgres_url, "phylactery_agent")) as opened:
        yield opened


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(ENDS_SECONDS):
        while not check():  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.02)


@pytest.mark.slow
async def test_a_stream_at_one_replica_shows_a_turn_another_serves(replicas: Replicas) -> None:
    await replicas.add()
    await replicas.add()
    replicas.agents[1].runner._stopped = True  # it takes in, and serves nothing
    ana = replicas.person(1)
    events = await ana.stream("repite hola")
    assert [event.WhichOneof("kind") for event in events][-1] == "run_finished"
    assert (await ana.say("repite adiós")).reply.text == "adiós"


async def test_a_run_that_waits_at_one_replica_is_approved_at_another_and_its_effect_happens_once(
    replicas: Replicas,
) -> None:
    await replicas.add()
    await replicas.add()
    asked = await replicas.person(0).say('añade "línea" a lista.txt')
    approval_id, code = approval_of(asked)
    done = await replicas.person(1).say(f"APROBAR {approval_id} {code}")
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)
    assert replicas.sandbox.joinpath("lista.txt").read_text().count("línea") == 1


@pytest.mark.slow
async def test_eight_simultaneous_answers_at_two_replicas_are_one_effect(replicas: Replicas) -> None:
    await replicas.add()
    await replicas.add()
    asked = await replicas.person(0).say('añade "línea" a lista.txt')
    approval_id, code = approval_of(asked)
    yes = f"APROBAR {approval_id} {code}"
    await asyncio.gather(
        replicas.system.person("ana").approve_at_riskgate(approval_id),
        *(replicas.person(number % 2).say(yes) for number in range(8)),
        return_exceptions=True,
    )
    await until(lambda: replicas.rows("SELECT count(*) FROM agent_inbox WHERE state = 'waiting'") == [(0,)])
    assert replicas.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
    [(status,)] = replicas.rows(f"SELECT status FROM agent_runs WHERE run_id = '{asked.run.id}'")
    assert status == "done"


@pytest.mark.slow
async def test_a_request_beside_a_waiting_run_and_its_answer_may_come_to_different_replicas(replicas: Replicas) -> None:
    await replicas.add()
    await replicas.add()
    asked = await replicas.person(0).say('añade "línea" a lista.txt')
    between = await asyncio.gather(*(replicas.person(n % 2).say(f"repite {n}") for n in range(4)))
    assert [answer.reply.text.splitlines()[0] for answer in between] == [str(n) for n in range(4)]
    assert len({answer.run.id for answer in between} | {asked.run.id}) == 5
    approval_id, code = approval_of(asked)
    answers = await asyncio.gather(
        *(replicas.person(n % 2).say(f"APROBAR {approval_id} {code}") for n in range(4)),
        *(replicas.person(n % 2).say("repite hola") for n in range(4)),
    )
    assert {answer.run.id for answer in answers if answer.run.id == asked.run.id} == {asked.run.id}
    assert replicas.sandbox.joinpath("lista.txt").read_text().count("línea") == 1
    sequences = [sequence for (sequence,) in replicas.rows("SELECT sequence FROM agent_events ORDER BY sequence")]
    assert sequences == list(range(1, len(sequences) + 1))
    assert replicas.rows("SELECT status FROM agent_runs WHERE status NOT IN ('done', 'suspended')") == []


@pytest.mark.slow
async def test_one_request_at_two_replicas_at_once_is_one_turn(replicas: Replicas) -> None:
    await replicas.add()
    await replicas.add()
    for number in range(5):
        answers = await asyncio.gather(
            *(replicas.person(n % 2).say("repite hola", "", request_id=f"request-{number}") for n in range(4))
        )
        assert len({answer.run.id for answer in answers}) == 1
    assert replicas.rows("SELECT count(*) FROM agent_runs") == [(5,)]


@pytest.mark.slow
async def test_clocks_an_hour_apart_take_no_lease_from_a_living_replica(replicas: Replicas) -> None:
    early, late = FakeClock(), FakeClock()
    early.advance(-3600)
    late.advance(3600)
    await replicas.add(clock=early)
    await replicas.add(clock=late)
    answers = await asyncio.gather(
        *(replicas.person(n % 2).say(f"repite {n}", f"t{n // 2}") for n in range(12)),
    )
    assert [answer.reply.text for answer in answers] == [str(n) for n in range(12)]
    assert replicas.rows("SELECT DISTINCT attempt FROM agent_runs") == [(1,)]


async def test_a_replica_with_another_key_or_journal_does_not_start(replicas: Replicas, tmp_path: Path) -> None:
    await replicas.add()
    with pytest.raises(StartError, match=r"elsewhere/seal\.key does not belong"):
        await replicas.add(data_dir=tmp_path / "elsewhere")
    shutil.copy(replicas.system.folder / "shared" / "seal.key", tmp_path / "elsewhere" / "seal.key")
    with pytest.raises(StartError, match=r"elsewhere/journal\.id does not belong"):
        await replicas.add(data_dir=tmp_path / "elsewhere")


@pytest.mark.slow
async def test_what_a_full_replica_has_no_room_for_another_serves(replicas: Replicas) -> None:
    await replicas.add(max_concurrent_turns=1)
    await replicas.add()
    slot = replicas.agents[0].runner._slots
    await slot.acquire()  # as a turn that takes for ever
    answer = await replicas.person(0).say("repite hola")
    assert answer.reply.text == "hola"
    slot.release()


@pytest.mark.slow
async def test_an_erasure_at_one_replica_stops_what_another_serves(replicas: Replicas) -> None:
    await replicas.add()
    await replicas.add()
    asked = await replicas.person(0).say('añade "línea" a lista.txt')
    assert asked.run.status == SUSPENDED
    held = asked.run.thread_id
    key = replicas.rows("SELECT thread_key FROM agent_threads")[0][0]
    await replicas.agents[0].runner.hold([key], by="erasures")
    call = replicas.person(1).chat.SendMessage(
        chat_pb2.SendMessageRequest(request_id="request-held", thread_id=held, text="repite hola"),
        metadata=replicas.person(1).metadata,
    )
    await until(lambda: replicas.rows("SELECT count(*) FROM agent_inbox WHERE state = 'waiting'") == [(1,)])
    await asyncio.sleep(0.3)
    assert replicas.rows("SELECT count(*) FROM agent_inbox WHERE state = 'waiting'") == [(1,)]
    await replicas.agents[0].runner.release([key], by="erasures")
    replicas.agents[0].runner.wake(key)
    assert (await call).run.status == event_pb2.RUN_STATUS_DONE
