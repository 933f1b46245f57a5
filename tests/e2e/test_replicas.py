"""Agents that die, stop or lose their database, over both stores; effects are counted at their target.

Another agent takes over: over SQLite the next one started, over PostgreSQL one that is running.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.ids import new_id
from phylactery_cli.supervisor import Stack

from tests.support.databases.invariants import at_rest, broken
from tests.support.processes.agents import LEASE_SECONDS, OtherAgent, wait_until
from tests.support.processes.stack import Person, await_death, crash_at, lines, relaunch, sandbox, yes
from tests.support.servers import postgres
from tests.support.servers.postgres import create_database

pytestmark = pytest.mark.slow

DONE, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_SUSPENDED
ASK = 'append "one line" to log.txt'
BEFORE_THE_YES = [
    "agent.inbox.before",
    "agent.5",
    "agent.claim.before",
    "agent.claim",
    "agent.write.before",
    "agent.write",
    "agent.1",
    "agent.3b",
    "agent.write#2",
]
_YES = "agent.5#2"
"""What is reached once the approval is in the inbox."""
AFTER_THE_YES = [
    "agent.inbox.before#2",
    _YES,
    *(
        f"{_YES}>{point}"
        for point in (
            "agent.claim.before",
            "agent.claim",
            *(f"agent.write.before#{number}" for number in range(1, 6)),
            *(f"agent.write#{number}" for number in range(1, 6)),
            "agent.6",
            "agent.7",
            "agent.8",
            "agent.write_file.noted",
            "agent.write_file.kept",
            "agent.write_file.renamed",
            "agent.9",
            "agent.10",
            "agent.11",
            "agent.outbox.before",
            "agent.outbox.settled",
        )
    ),
]


POINTS = sorted({point.rpartition(">")[2].partition("#")[0] for point in (*BEFORE_THE_YES, *AFTER_THE_YES)})


def migrated(url: str) -> str:
    database = Database(url)
    try:
        database.migrate("phylactery_agent")
    finally:
        database.close()
    return url


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A database's URL, and what an agent is told to use it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'data' / 'agent' / 'agent.db'}", {}
    return shared_store(request.getfixturevalue("postgres_url"))


def shared_store(cluster_url: str) -> tuple[str, dict[str, str]]:
    url = migrated(create_database(cluster_url, new_id("e2e")))
    return url, {"AGENT_DATABASE_URL": url, "AGENT_LEASE_SECONDS": str(LEASE_SECONDS), "AGENT_RETRY_SECONDS": "0.1"}


@contextlib.contextmanager
def after_the_death(stack: Stack, url: str) -> Iterator[str]:
    """Go on after the stack's agent died, and return where an agent is: the same one again, or another."""
    if url.startswith("sqlite"):
        relaunch(stack, "agent")
        yield stack.target("agent")
        return
    with OtherAgent(stack, "other") as other:
        yield other.target


class At(Person):
    """A person who talks to one agent among several."""

    def __init__(self, stack: Stack, target: str, subject: str = "ana", thread: str = "thread-1") -> None:
        super().__init__(stack, subject, thread=thread)
        self._target = target

    def channel(self, service: str) -> grpc.Channel:
        """Open a channel to this agent."""
        if service != "agent":
            return super().channel(service)
        self._channels.append(grpc.insecure_channel(self._target))
        return self._channels[-1]


def settled(url: str) -> None:
    """Wait until nothing is under way, and hold the database to its invariants."""
    wait_until(lambda: at_rest(url), "rest")
    assert broken(url) == []


@pytest.mark.parametrize("point", BEFORE_THE_YES)
def test_killed_before_the_approval_the_same_request_asks_once_and_the_effect_happens_once(
    make_stack: Callable[..., Stack], store: tuple[str, dict[str, str]], point: str
) -> None:
    url, environment = store
    stack = make_stack(agent=environment)
    crash_at(stack, "agent", point)
    stack.start()
    with Person(stack, "ana") as ana:
        with contextlib.suppress(grpc.RpcError):
            ana.say(ASK, request_id="ask-request-1")
        await_death(stack, "agent")
    with after_the_death(stack, url) as target, At(stack, target) as ana:
        asked = ana.say(ASK, request_id="ask-request-1")
        assert (asked.run.status, lines(stack)) == (SUSPENDED, [])
        assert ana.say(yes(asked)).run.status == DONE
        settled(url)
        assert lines(stack) == ["one line"]


@pytest.mark.parametrize("point", AFTER_THE_YES)
def test_killed_after_the_approval_the_run_goes_on_by_itself_and_the_effect_happens_once(
    make_stack: Callable[..., Stack], store: tuple[str, dict[str, str]], point: str
) -> None:
    url, environment = store
    stack = make_stack(agent=environment)
    crash_at(stack, "agent", point)
    stack.start()
    with Person(stack, "ana") as ana:
        try:
            asked = ana.say(ASK)
            with contextlib.suppress(grpc.RpcError):
                ana.say(yes(asked), request_id="yes-request-1")
        except grpc.RpcError:
            pytest.fail(f"{point} lies before the approval")
        await_death(stack, "agent")
    assert len(lines(stack)) <= 1
    with after_the_death(stack, url) as target, At(stack, target) as ana:
        again = ana.say(yes(asked), request_id="yes-request-1")
        assert (again.run.id, again.run.status) == (asked.run.id, DONE)
        settled(url)
        assert lines(stack) == ["one line"]
        assert [call.state for call in ana.run(again.run.id).tool_calls] == ["finished"]


@pytest.mark.parametrize("point", ["agent.7", "agent.8", "agent.9"])
def test_an_agent_that_stood_still_past_its_lease_writes_nothing_more_when_it_goes_on(
    make_stack: Callable[..., Stack], postgres_url: str, point: str
) -> None:
    url, environment = shared_store(postgres_url)
    stack = make_stack(agent=environment)
    stack.start()
    with (
        OtherAgent(stack, "sleeper", point=point, number="SIGSTOP") as sleeper,
        At(stack, sleeper.target) as ana,
        Person(stack, "ana") as awake,
        ThreadPoolExecutor(1) as calling,
    ):
        asked = awake.say(ASK)
        answer = calling.submit(ana.say, yes(asked), request_id="yes-request-1")
        wait_until(sleeper.stopped, "standing still")
        thread = awake.await_status(DONE)
        assert thread.last_run.id == asked.run.id
        assert lines(stack) == ["one line"]
        sleeper.go_on()
        assert answer.result(60).run.status == DONE
        assert At(stack, sleeper.target).say("repite hola").reply.text == "hola"
        settled(url)
        assert lines(stack) == ["one line"]


def test_a_database_that_restarts_and_sessions_that_are_ended_stop_no_run(
    make_stack: Callable[..., Stack], tmp_path: Path
) -> None:
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with postgres.running() as cluster:
        url, environment = shared_store(cluster.url)
        stack = make_stack(agent=environment)
        stack.start()
        with OtherAgent(stack, "other") as other, ThreadPoolExecutor(8) as calling:
            targets = [stack.target("agent"), other.target]
            said = [calling.submit(_say_until_answered, stack, targets[n % 2], n) for n in range(12)]
            wait_until(lambda: _count(url, "SELECT count(*) FROM agent_inbox WHERE state = 'handled'") > 0, "a turn")
            _end_sessions(url)
            cluster.stop("fast")
            cluster.start()
            assert [one.result(120) for one in said] == [str(n) for n in range(12)]
            settled(url)


def _say_until_answered(stack: Stack, target: str, number: int) -> str:
    """Say something, with the same id as often as it takes, as a client does, and return the reply."""
    request = chat_pb2.SendMessageRequest(
        request_id=f"request-{number:04}", thread_id=f"thread-{number}", text=f"repite {number}"
    )
    with At(stack, target, thread=f"thread-{number}") as ana:
        stub = chat_pb2_grpc.ChatServiceStub(ana.channel("agent"))
        limit = time.monotonic() + 100
        while True:
            try:
                return str(stub.SendMessage(request, metadata=ana.metadata, timeout=60).reply.text)
            except grpc.RpcError:
                assert time.monotonic() < limit
                time.sleep(0.1)


def _count(url: str, text: str) -> int:
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as connection:
        return int(connection.scalar(sa.text(text)) or 0)


def _end_sessions(url: str) -> None:
    _count(
        url,
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_agents_killed_at_random_lose_no_message_and_do_nothing_twice(
    make_stack: Callable[..., Stack], postgres_url: str
) -> None:
    """PHYLACTERY_NIGHTLY_KILLS says how many are killed; without it a few are."""
    kills = int(os.environ.get("PHYLACTERY_NIGHTLY_KILLS", "3"))
    seed = int(os.environ.get("PHYLACTERY_NIGHTLY_SEED", "6"))
    chance = random.Random(seed)
    url, environment = shared_store(postgres_url)
    stack = make_stack(agent=environment)
    stack.start()
    with ThreadPoolExecutor(4) as calling:
        said: list[Future[None]] = []
        for number in range(kills):
            point = f"{chance.choice(POINTS)}#{chance.randint(1, 6)}"
            with OtherAgent(stack, f"victim-{number}", point=point) as victim:
                names = [f"{number}-{turn}" for turn in range(4)]
                said += [calling.submit(_append_once, stack, victim.target, name) for name in names]
                wait_until(functools.partial(_dead_or_idle, victim, said), "a death")
        for one in said:
            one.result(180)
        settled(url)
    assert {path.name: path.read_text() for path in sandbox(stack).glob("log-*.txt")} == {
        f"log-{n}-{t}.txt": "one line\n" for n in range(kills) for t in range(4)
    }


def _dead_or_idle(agent: OtherAgent, said: list[Future[None]]) -> bool:
    return agent.process.poll() is not None or all(one.done() for one in said)


def _append_once(stack: Stack, target: str, name: str) -> None:
    """Ask for an effect at an agent that may die, and approve it at whichever lives."""
    ask, approve = f"ask-{name}-request", f"yes-{name}-request"
    asked = _insist(stack, target, name, ask, f'append "one line" to log-{name}.txt')
    assert asked.run.status == SUSPENDED
    done = _insist(stack, target, name, approve, yes(asked))
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)


def _insist(stack: Stack, target: str, name: str, request_id: str, text: str) -> chat_pb2.SendMessageResponse:
    with At(stack, target, thread=f"thread-{name}") as there, Person(stack, "ana", thread=f"thread-{name}") as here:
        with contextlib.suppress(grpc.RpcError):
            return there.say(text, request_id=request_id)
        return here.say(text, request_id=request_id, timeout=120)
