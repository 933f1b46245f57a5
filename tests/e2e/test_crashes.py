"""SIGKILL at the crash points of docs/effects.md, with real processes; effects are counted at their target.

The effect appends one line to a file, so every extra line is an extra effect.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery_chassis.util.ids import new_id

from tests.support.databases.invariants import at_rest, broken
from tests.support.processes import commands
from tests.support.processes.agents import wait_until
from tests.support.processes.shared import Tenant, database_url
from tests.support.processes.stack import await_death, relaunch, yes
from tests.support.servers.postgres import create_database

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("e2e-crashes")]

DONE, FAILED, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_FAILED, event_pb2.RUN_STATUS_SUSPENDED
ASK = 'append "one line" to log.txt'


@pytest.fixture
def tenant(new_tenant: Callable[..., Tenant]) -> Tenant:
    return new_tenant()


@pytest.mark.parametrize("point", ["agent.1", "agent.3b", "agent.5"])
def test_killed_before_the_approval_the_same_request_asks_again_and_the_effect_happens_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        ana.say_and_lose(ASK, "ask-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        asked = ana.say(ASK, request_id="ask-request-1")
        assert asked.run.status == SUSPENDED
        assert tenant.lines() == []
        done = ana.say(yes(asked))
        assert done.run.status == DONE
        assert tenant.lines() == ["one line"]


@pytest.mark.parametrize("point", ["agent.inbox.before#2", "agent.5#2", "agent.claim#2", "agent.6", "agent.8"])
def test_killed_between_an_answer_by_id_and_its_run_the_effect_happens_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        asked = ana.say(ASK)
        with pytest.raises(grpc.RpcError):
            ana.answer(asked.pending_approval, "answer-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        done = ana.answer(asked.pending_approval, "answer-request-1")
        assert (done.run.id, done.run.status) == (asked.run.id, DONE)
        assert tenant.lines() == ["one line"]


@pytest.mark.parametrize("point", ["agent.5#2", "agent.claim.before#2", "agent.passed.before"])
def test_killed_while_it_stops_what_waits_the_stop_is_served_again_and_nothing_of_it_runs(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        asked = ana.say(ASK)
        assert asked.run.status == SUSPENDED
        ana.say_and_lose("please stop", "stop-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        stopped = ana.say("please stop", request_id="stop-request-1")
        assert (stopped.run.reason, ASK in stopped.reply.text) == ("STOPPED", True)
        assert ana.say("please stop", request_id="stop-request-1").run.id == stopped.run.id
        assert ana.run(asked.run.id).status == event_pb2.RUN_STATUS_CANCELLED
        assert ana.say(yes(asked)).run.reason == "NOTHING_WAITS"
        assert tenant.lines() == []
        assert list(ana.standing().pending_approvals) == []
    assert broken(database_url(stack)) == []


@pytest.mark.parametrize("point", ["agent.5#2", "agent.6", "agent.7", "agent.8", "agent.9", "agent.10", "agent.11"])
def test_killed_after_the_approval_the_run_goes_on_by_itself_and_the_effect_happens_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        asked = ana.say(ASK)
        if point == "agent.11":  # the report goes out beside the answer: either may be first
            with contextlib.suppress(grpc.RpcError):
                ana.say(yes(asked), request_id="yes-request-1")
        else:
            ana.say_and_lose(yes(asked), "yes-request-1")
        await_death(stack, "agent")
        assert len(tenant.lines()) <= 1
        relaunch(stack, "agent")
        thread = ana.await_status(DONE)
        assert tenant.lines() == ["one line"]
        again = ana.say(yes(asked), request_id="yes-request-1")
        assert again.run.id == thread.last_run.id
        assert [call.state for call in ana.run(again.run.id).tool_calls] == ["finished"]
        assert tenant.lines() == ["one line"]
        sequences = [event.sequence for event in ana.events(yes(asked), request_id="yes-request-1")]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("point", ["agent.claim#2", "agent.1#2", "agent.3b#2", "agent.5#3", "agent.9", "agent.10#2"])
def test_killed_while_two_of_a_thread_wait_or_run_each_effect_happens_once(
    new_tenant: Callable[..., Tenant], request: pytest.FixtureRequest, kind: str, point: str
):
    def over_postgresql() -> dict[str, dict[str, str]]:
        variables = {"AGENT_DATABASE_URL": create_database(request.getfixturevalue("postgres_url"), new_id("agent"))}
        assert commands.run("phylactery_agent", "migrate", environment={**os.environ, **variables}).returncode == 0
        return {"agent": variables}

    tenant = new_tenant("postgresql", over_postgresql) if kind == "postgresql" else new_tenant()
    stack, url = tenant.stack, database_url(tenant.stack)
    tenant.crash_at("agent", point)
    deaths = 0

    def insist(text: str) -> chat_pb2.SendMessageResponse:
        nonlocal deaths
        request_id = ana.new_request_id()
        try:
            return ana.say(text, request_id=request_id)
        except grpc.RpcError:
            deaths += 1
            await_death(stack, "agent")
            relaunch(stack, "agent")
            return ana.say(text, request_id=request_id)

    with tenant.person() as ana:
        first, second = insist(ASK), insist('append "other line" to other.txt')
        assert (first.run.id != second.run.id, second.run.status) == (True, SUSPENDED)
        for asked in (second, first):
            done = insist(yes(asked))
            assert (done.run.id, done.run.status) == (asked.run.id, DONE)
        assert (deaths, tenant.lines(), tenant.lines("other.txt")) == (1, ["one line"], ["other line"])
    wait_until(lambda: at_rest(url), "nothing is under way")
    assert broken(url) == []


def test_riskgate_killed_after_its_decision_nothing_runs_and_the_next_turn_works(tenant: Tenant):
    stack = tenant.stack
    tenant.crash_at("riskgate", "riskgate.2")
    with tenant.person() as ana:
        told = ana.say(ASK)
        assert (told.run.status, told.run.reason) == (FAILED, "GATE_UNAVAILABLE")
        assert "I cannot check right now whether I may do that, so I did not do it." in told.reply.text
        await_death(stack, "riskgate")
        relaunch(stack, "riskgate")
        asked = ana.say(ASK)
        assert asked.run.status == SUSPENDED
        assert ana.say(yes(asked)).run.status == DONE
        assert tenant.lines() == ["one line"]


def test_riskgate_killed_after_the_approval_the_run_goes_on_once_it_is_back(tenant: Tenant):
    stack = tenant.stack
    tenant.crash_at("riskgate", "riskgate.4")
    with tenant.person() as ana:
        asked = ana.say(ASK)
        told = ana.say(yes(asked))
        assert told.run.status == SUSPENDED, "an answer RiskGate did not confirm must not be lost"
        assert tenant.lines() == []
        await_death(stack, "riskgate")
        relaunch(stack, "riskgate")
        ana.await_status(DONE)
        assert tenant.lines() == ["one line"]


def test_riskgate_killed_after_the_redeem_the_same_execution_goes_on_once_it_is_back(tenant: Tenant):
    stack = tenant.stack
    tenant.crash_at("riskgate", "riskgate.8")
    with tenant.person() as ana:
        asked = ana.say(ASK)
        told = ana.say(yes(asked))
        await_death(stack, "riskgate")
        assert (told.run.status, told.run.reason) == (SUSPENDED, "GATE_UNAVAILABLE")
        assert tenant.lines() == []
        relaunch(stack, "riskgate")
        ana.await_status(DONE)
        assert tenant.lines() == ["one line"]
        assert [call.state for call in ana.run(told.run.id).tool_calls] == ["finished"]
