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
from phylactery_cli.supervisor import Stack

from tests.support.databases.invariants import at_rest, broken
from tests.support.processes import commands
from tests.support.processes.agents import wait_until
from tests.support.processes.stack import Person, await_death, crash_at, lines, relaunch, yes
from tests.support.servers.postgres import create_database

pytestmark = pytest.mark.slow

DONE, FAILED, SUSPENDED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_FAILED, event_pb2.RUN_STATUS_SUSPENDED
ASK = 'append "one line" to log.txt'


@pytest.fixture
def dying(make_stack: Callable[..., Stack]):
    """A started stack in which one service dies at one point."""

    def start(service: str, point: str) -> Stack:
        stack = make_stack()
        crash_at(stack, service, point)
        stack.start()
        return stack

    return start


@pytest.mark.parametrize("point", ["agent.1", "agent.3b", "agent.5"])
def test_killed_before_the_approval_the_same_request_asks_again_and_the_effect_happens_once(dying, point: str):
    stack = dying("agent", point)
    with Person(stack, "ana") as ana:
        ana.say_and_lose(ASK, "ask-request-1")
        await_death(stack, "agent")
        relaunch(stack, "agent")
        asked = ana.say(ASK, request_id="ask-request-1")
        assert asked.run.status == SUSPENDED
        assert lines(stack) == []
        done = ana.say(yes(asked))
        assert done.run.status == DONE
        assert lines(stack) == ["one line"]


@pytest.mark.parametrize("point", ["agent.5#2", "agent.claim.before#2", "agent.passed.before"])
def test_killed_while_it_stops_what_waits_the_stop_is_served_again_and_nothing_of_it_runs(dying, point: str):
    stack = dying("agent", point)
    with Person(stack, "ana") as ana:
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
        assert lines(stack) == []
        assert list(ana.standing().pending_approvals) == []


@pytest.mark.parametrize("point", ["agent.5#2", "agent.6", "agent.7", "agent.8", "agent.9", "agent.10", "agent.11"])
def test_killed_after_the_approval_the_run_goes_on_by_itself_and_the_effect_happens_once(dying, point: str):
    stack = dying("agent", point)
    with Person(stack, "ana") as ana:
        asked = ana.say(ASK)
        if point == "agent.11":  # the report goes out beside the answer: either may be first
            with contextlib.suppress(grpc.RpcError):
                ana.say(yes(asked), request_id="yes-request-1")
        else:
            ana.say_and_lose(yes(asked), "yes-request-1")
        await_death(stack, "agent")
        assert len(lines(stack)) <= 1
        relaunch(stack, "agent")
        thread = ana.await_status(DONE)
        assert lines(stack) == ["one line"]
        again = ana.say(yes(asked), request_id="yes-request-1")
        assert again.run.id == thread.last_run.id
        assert [call.state for call in ana.run(again.run.id).tool_calls] == ["finished"]
        assert lines(stack) == ["one line"]
        sequences = [event.sequence for event in ana.events(yes(asked), request_id="yes-request-1")]
        assert sequences == list(range(sequences[0], sequences[0] + len(sequences)))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
@pytest.mark.parametrize("point", ["agent.claim#2", "agent.1#2", "agent.3b#2", "agent.5#3", "agent.9", "agent.10#2"])
def test_killed_while_two_of_a_thread_wait_or_run_each_effect_happens_once(
    make_stack: Callable[..., Stack], request: pytest.FixtureRequest, kind: str, point: str
):
    variables = {}
    if kind == "postgresql":
        url = create_database(request.getfixturevalue("postgres_url"), new_id("agent"))
        variables = {"AGENT_DATABASE_URL": url}
        assert commands.run("phylactery_agent", "migrate", environment={**os.environ, **variables}).returncode == 0
    stack = make_stack(agent=variables)
    url = variables.get("AGENT_DATABASE_URL", f"sqlite:///{stack.data_dir / 'agent' / 'agent.db'}")
    crash_at(stack, "agent", point)
    stack.start()
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

    with Person(stack, "ana") as ana:
        first, second = insist(ASK), insist('append "other line" to other.txt')
        assert (first.run.id != second.run.id, second.run.status) == (True, SUSPENDED)
        for asked in (second, first):
            done = insist(yes(asked))
            assert (done.run.id, done.run.status) == (asked.run.id, DONE)
        assert (deaths, lines(stack), lines(stack, "other.txt")) == (1, ["one line"], ["other line"])
    wait_until(lambda: at_rest(url), "nothing is under way")
    assert broken(url) == []


def test_riskgate_killed_after_its_decision_nothing_runs_and_the_next_turn_works(dying):
    stack = dying("riskgate", "riskgate.2")
    with Person(stack, "ana") as ana:
        told = ana.say(ASK)
        assert (told.run.status, told.run.reason) == (FAILED, "GATE_UNAVAILABLE")
        assert "I cannot check right now whether I may do that, so I did not do it." in told.reply.text
        await_death(stack, "riskgate")
        relaunch(stack, "riskgate")
        asked = ana.say(ASK)
        assert asked.run.status == SUSPENDED
        assert ana.say(yes(asked)).run.status == DONE
        assert lines(stack) == ["one line"]


def test_riskgate_killed_after_the_approval_the_run_goes_on_once_it_is_back(dying):
    stack = dying("riskgate", "riskgate.4")
    with Person(stack, "ana") as ana:
        asked = ana.say(ASK)
        told = ana.say(yes(asked))
        assert told.run.status == SUSPENDED, "an answer RiskGate did not confirm must not be lost"
        assert lines(stack) == []
        await_death(stack, "riskgate")
        relaunch(stack, "riskgate")
        ana.await_status(DONE)
        assert lines(stack) == ["one line"]


def test_riskgate_killed_after_the_redeem_the_same_execution_goes_on_once_it_is_back(dying):
    stack = dying("riskgate", "riskgate.8")
    with Person(stack, "ana") as ana:
        asked = ana.say(ASK)
        told = ana.say(yes(asked))
        await_death(stack, "riskgate")
        assert (told.run.status, told.run.reason) == (SUSPENDED, "GATE_UNAVAILABLE")
        assert lines(stack) == []
        relaunch(stack, "riskgate")
        ana.await_status(DONE)
        assert lines(stack) == ["one line"]
        assert [call.state for call in ana.run(told.run.id).tool_calls] == ["finished"]
