"""Agents that die, stop or lose their database, over both stores; effects are counted at their target.

Another agent takes over: over SQLite the next one started, over PostgreSQL one that is running.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import grpc
import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2, chat_pb2_grpc, event_pb2
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.ids import new_id
from phylactery_cli.supervisor import Stack

from tests.support.databases.invariants import at_rest, broken
from tests.support.processes.agents import LEASE_SECONDS, OtherAgent, wait_until
from tests.support.processes.shared import Tenant, database_url
from tests.support.processes.stack import Person, await_death, relaunch, yes
from tests.support.servers import postgres
from tests.support.servers.postgres import create_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e-replicas")]

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


def shared_store(cluster_url: str) -> dict[str, str]:
    """Return what several agents are told to use one PostgreSQL database."""
    url = migrated(create_database(cluster_url, new_id("e2e")))
    return {"AGENT_DATABASE_URL": url, "AGENT_LEASE_SECONDS": str(LEASE_SECONDS), "AGENT_RETRY_SECONDS": "0.1"}


@pytest.fixture
def replicated(new_tenant: Callable[..., Tenant], postgres_url: str) -> Tenant:
    """A tenant of agents that share a PostgreSQL database."""
    return new_tenant("replicated", lambda: {"agent": shared_store(postgres_url)})


@pytest.fixture(params=["sqlite", "postgresql"])
def tenant(request: pytest.FixtureRequest, new_tenant: Callable[..., Tenant]) -> Tenant:
    return request.getfixturevalue("replicated") if request.param == "postgresql" else new_tenant()


def go_on(stack: Stack) -> None:
    """Let another agent take over from the dead one: over SQLite at its address, over PostgreSQL at any."""
    await_death(stack, "agent")
    relaunch(stack, "agent", port=None if database_url(stack).startswith("sqlite") else 0)


class At(Person):
    """A person who talks to one agent among several."""

    def __init__(self, tenant: Tenant, target: str, thread: str = "thread-1") -> None:
        super().__init__(tenant.stack, "ana", thread=thread, tenant=tenant.name)
        self._target = target

    def channel(self, service: str) -> grpc.Channel:
        """Open a channel to this agent."""
        if service != "agent":
            return super().channel(service)
        self._channels.append(grpc.insecure_channel(self._target))
        return self._channels[-1]


def settled(stack: Stack) -> None:
    """Wait until nothing is under way, and hold the database to its invariants."""
    url = database_url(stack)
    wait_until(lambda: at_rest(url), "rest")
    assert broken(url) == []


@pytest.mark.parametrize("point", BEFORE_THE_YES)
def test_killed_before_the_approval_the_same_request_asks_once_and_the_effect_happens_once(
    tenant: Tenant, point: str
) -> None:
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        with contextlib.suppress(grpc.RpcError):
            ana.say(ASK, request_id="ask-request-1")
        go_on(tenant.stack)
        asked = ana.say(ASK, request_id="ask-request-1")
        assert (asked.run.status, tenant.lines()) == (SUSPENDED, [])
        assert ana.say(yes(asked)).run.status == DONE
        settled(tenant.stack)
        assert tenant.lines() == ["one line"]


@pytest.mark.parametrize("point", AFTER_THE_YES)
def test_killed_after_the_approval_the_run_goes_on_by_itself_and_the_effect_happens_once(
    tenant: Tenant, point: str
) -> None:
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        try:
            asked = ana.say(ASK)
            with contextlib.suppress(grpc.RpcError):
                ana.say(yes(asked), request_id="yes-request-1")
        except grpc.RpcError:
            pytest.fail(f"{point} lies before the approval")
        go_on(tenant.stack)
        assert len(tenant.lines()) <= 1
        again = ana.say(yes(asked), request_id="yes-request-1")
        assert (again.run.id, again.run.status) == (asked.run.id, DONE)
        settled(tenant.stack)
        assert tenant.lines() == ["one line"]
        assert [call.state for call in ana.run(again.run.id).tool_calls] == ["finished"]


@pytest.mark.parametrize("point", ["agent.7", "agent.8", "agent.9"])
def test_an_agent_that_stood_still_past_its_lease_writes_nothing_more_when_it_goes_on(
    replicated: Tenant, point: str
) -> None:
    tenant = replicated
    with (
        OtherAgent(tenant.stack, "sleeper", point=point, number="SIGSTOP") as sleeper,
        At(tenant, sleeper.target) as ana,
        tenant.person() as awake,
        ThreadPoolExecutor(1) as calling,
    ):
        asked = awake.say(ASK)
        answer = calling.submit(ana.say, yes(asked), request_id="yes-request-1")
        wait_until(sleeper.stopped, "standing still")
        thread = awake.await_status(DONE)
        assert thread.last_run.id == asked.run.id
        assert tenant.lines() == ["one line"]
        sleeper.go_on()
        assert answer.result(60).run.status == DONE
        assert At(tenant, sleeper.target).say("repite hola").reply.text == "hola"
        settled(tenant.stack)
        assert tenant.lines() == ["one line"]


def test_a_database_that_restarts_and_sessions_that_are_ended_stop_no_run(
    make_stack: Callable[..., Stack],
) -> None:
    if postgres.binaries() is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    with postgres.running() as cluster:
        stack = make_stack(agent=shared_store(cluster.url))
        url, tenant = database_url(stack), Tenant(stack)
        stack.start()
        with OtherAgent(stack, "other") as other, ThreadPoolExecutor(8) as calling:
            targets = [stack.target("agent"), other.target]
            said = [calling.submit(_say_until_answered, tenant, targets[n % 2], n) for n in range(12)]
            wait_until(lambda: _count(url, "SELECT count(*) FROM agent_inbox WHERE state = 'handled'") > 0, "a turn")
            _end_sessions(url)
            cluster.stop("fast")
            cluster.start()
            assert [one.result(120) for one in said] == [str(n) for n in range(12)]
            settled(stack)


def _say_until_answered(tenant: Tenant, target: str, number: int) -> str:
    """Say something, with the same id as often as it takes, as a client does, and return the reply."""
    request = chat_pb2.SendMessageRequest(
        request_id=f"request-{number:04}", thread_id=f"thread-{number}", text=f"repite {number}"
    )
    with At(tenant, target, thread=f"thread-{number}") as ana:
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
    replicated: Tenant,
) -> None:
    """PHYLACTERY_NIGHTLY_KILLS says how many are killed; without it a few are."""
    kills = int(os.environ.get("PHYLACTERY_NIGHTLY_KILLS", "3"))
    seed = int(os.environ.get("PHYLACTERY_NIGHTLY_SEED", "6"))
    chance = random.Random(seed)
    tenant = replicated
    with ThreadPoolExecutor(4) as calling:
        said: list[Future[None]] = []
        for number in range(kills):
            point = f"{chance.choice(POINTS)}#{chance.randint(1, 6)}"
            with OtherAgent(tenant.stack, f"victim-{number}", point=point) as victim:
                names = [f"{number}-{turn}" for turn in range(4)]
                said += [calling.submit(_append_once, tenant, victim.target, name) for name in names]
                wait_until(functools.partial(_dead_or_idle, victim, said), "a death")
        for one in said:
            one.result(180)
        settled(tenant.stack)
    assert {path.name: path.read_text() for path in tenant.sandbox.glob("log-*.txt")} == {
        f"log-{n}-{t}.txt": "one line\n" for n in range(kills) for t in range(4)
    }


def _dead_or_idle(agent: OtherAgent, said: list[Future[None]]) -> bool:
    return agent.process.poll() is not None or all(one.done() for one in said)


def _append_once(tenant: Tenant, target: str, name: str) -> None:
    """Ask for an effect at an agent that may die, and approve it at whichever lives."""
    ask, approve = f"ask-{name}-request", f"yes-{name}-request"
    asked = _insist(tenant, target, name, ask, f'append "one line" to log-{name}.txt')
    assert asked.run.status == SUSPENDED
    done = _insist(tenant, target, name, approve, yes(asked))
    assert (done.run.id, done.run.status) == (asked.run.id, DONE)


def _insist(tenant: Tenant, target: str, name: str, request_id: str, text: str) -> chat_pb2.SendMessageResponse:
    thread, here = f"thread-{name}", tenant.stack.target("agent")
    with At(tenant, target, thread) as there, contextlib.suppress(grpc.RpcError):
        return there.say(text, request_id=request_id)
    with At(tenant, here, thread) as other:
        return other.say(text, request_id=request_id, timeout=120)
