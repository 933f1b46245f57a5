"""SIGKILL around RiskGate's observation of a task, with real processes; observations are counted in its database.

An ended task has lost its observations; its row still holds how many there were, and how it was begun.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from typing import NamedTuple

import grpc
import pytest
from phylactery.agent.v1 import event_pb2
from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder

from tests.support.processes.shared import Tenant
from tests.support.processes.stack import await_death, relaunch

pytestmark = pytest.mark.slow

DONE, FAILED = event_pb2.RUN_STATUS_DONE, event_pb2.RUN_STATUS_FAILED
ASK = "lee a.txt y luego lee b.txt"
_LIMIT_SECONDS = 60.0


class Shown(NamedTuple):
    """A task as RiskGate's row says: how many results it was shown, and whether it was ended."""

    task_id: str
    request_id: str
    results: int
    ended: bool


def tasks(tenant: Tenant) -> list[Shown]:
    query = "SELECT id, request_id, pieces, end_us FROM tasks WHERE tenant = ? ORDER BY create_us"
    with closing(sqlite3.connect(tenant.stack.data_dir / "riskgate" / "riskgate.db")) as database:
        rows = database.execute(query, [tenant.name]).fetchall()
    return [Shown(task_id, request_id, pieces - 1, bool(end_us)) for task_id, request_id, pieces, end_us in rows]


def await_ended(tenant: Tenant, number: int = 1) -> list[Shown]:
    """Wait until so many tasks are there and all have ended. Raise AssertionError when they never have."""
    limit = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < limit:
        found = tasks(tenant)
        if len(found) >= number and all(task.ended for task in found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"not ended after {_LIMIT_SECONDS:.0f} s: {tasks(tenant)}")


@pytest.fixture
def tenant(new_tenant: Callable[..., Tenant]) -> Tenant:
    """A tenant with two files."""
    tenant = new_tenant()
    tenant.sandbox.mkdir(parents=True)
    (tenant.sandbox / "a.txt").write_text("text of a")
    (tenant.sandbox / "b.txt").write_text("text of b")
    return tenant


@pytest.mark.parametrize(
    "point",
    ["agent.0", "agent.7", "agent.9", "agent.10", "agent.11", "agent.11.observe", "agent.9#2", "agent.11.observe#2"],
)
def test_killed_anywhere_the_task_is_opened_once_and_every_result_shown_once(tenant: Tenant, point: str):
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        try:
            ana.say(ASK, request_id="ask-request-1")
        except grpc.RpcError:
            pass
        else:
            assert point == "agent.11.observe#2", "the last result goes out beside the answer: either may be first"
        await_death(stack, "agent")
        relaunch(stack, "agent")
        answer = ana.say(ASK, request_id="ask-request-1")
        assert (answer.run.status, answer.run.reason) == (DONE, "ANSWERED")
        assert "text of a" in answer.reply.text
        assert "text of b" in answer.reply.text
        [task] = await_ended(tenant)
        assert (task.request_id, task.results) == (answer.run.id, 2)


@pytest.mark.parametrize(("point", "results"), [("riskgate.0", 0), ("riskgate.11", 1)])
def test_riskgate_killed_before_it_answers_the_turn_says_so_and_what_it_was_shown_counts_once(
    tenant: Tenant, point: str, results: int
):
    stack = tenant.stack
    tenant.crash_at("riskgate", point)
    with tenant.person() as ana:
        told = ana.say(ASK)
        assert (told.run.status, told.run.reason) == (FAILED, "GATE_UNAVAILABLE")
        assert "No puedo comprobar ahora si puedo hacerlo, así que no lo he hecho." in told.reply.text
        await_death(stack, "riskgate")
        relaunch(stack, "riskgate")
        answer = ana.say(ASK)
        assert answer.run.status == DONE
        shown = {task.request_id: task for task in await_ended_of(tenant, answer.run.id)}
        assert shown[told.run.id].results == results
        assert shown[answer.run.id].results == 2


def await_ended_of(tenant: Tenant, run_id: str) -> list[Shown]:
    """Wait until the task of a run has ended; one that was begun and never named is left to its time."""
    limit = time.monotonic() + _LIMIT_SECONDS
    while time.monotonic() < limit:
        found = tasks(tenant)
        if any(task.request_id == run_id and task.ended for task in found):
            return found
        time.sleep(0.05)
    raise AssertionError(f"not ended after {_LIMIT_SECONDS:.0f} s: {tasks(tenant)}")


def test_after_a_restart_of_every_service_the_run_that_waits_still_has_its_task(tenant: Tenant):
    stack = tenant.stack
    with tenant.person() as ana:
        asked = ana.say("lee no-existe.txt")
        assert asked.run.reason == "AWAITING_USER_INPUT"
        for service in ("agent", "riskgate"):
            stack.kill(service)
        for service in ("riskgate", "agent"):
            relaunch(stack, service)
        (tenant.sandbox / "existe.txt").write_text("aquí estoy")
        answer = ana.say("lee existe.txt")
        assert answer.run.id == asked.run.id
        assert "aquí estoy" in answer.reply.text
        first, second = await_ended(tenant, 2)
        assert (first.request_id, second.request_id.split(":")[0]) == (asked.run.id, asked.run.id)
        assert (first.results, second.results) == (1, 1)


@pytest.mark.parametrize("point", ["agent.0", "agent.7", "agent.8", "agent.9", "agent.10", "agent.11.observe"])
def test_a_write_that_was_asked_for_happens_once_and_is_shown_once_wherever_the_agent_is_killed(
    new_tenant: Callable[..., Tenant], point: str
):
    tenant = new_tenant("default bundle", lambda: {"riskgate": {"RISKGATE_BUNDLE": str(default_bundle_folder())}})
    stack = tenant.stack
    tenant.crash_at("agent", point)
    with tenant.person() as ana:
        ask = 'añade "una línea" a log.txt y luego lee log.txt'
        ana.say_and_lose(ask, "ask-request-1")
        await_death(stack, "agent")
        assert len(tenant.lines()) <= 1
        relaunch(stack, "agent")
        answer = ana.say(ask, request_id="ask-request-1")
        assert (answer.run.status, answer.run.reason) == (DONE, "ANSWERED")
        assert tenant.lines() == ["una línea"]
        [task] = await_ended(tenant)
        assert (task.request_id, task.results) == (answer.run.id, 2)
