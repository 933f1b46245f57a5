"""A task ended with keep: a correction right after it may continue it, and nothing else may."""

from __future__ import annotations

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2

from tests.support.riskgate.tasks import KNOWN, arguments, with_tasks

ALLOW, AUTH = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED
OTHER = "eve@acme.es"
ASKED, CHANGED = f"Send money to {KNOWN}", f"no, I meant {OTHER}"
KEEP, DAY = 600, 86_400


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.fixture
async def gate(make_gate, shared_database):
    return await make_gate(**({"database_url": shared_database} if shared_database else {}))


def transfer(call, to: str = KNOWN, call_id: str = "c1") -> types_pb2.ToolCall:
    return call("transfer", arguments(to), call_id)


async def run_once(person, call, task: str, to: str, call_id: str) -> types_pb2.ToolCall:
    """Have RiskGate allow a call, and redeem it."""
    proposed = transfer(call, to, call_id)
    answer = await person.evaluate(proposed, task_id=task)
    assert answer.decision == ALLOW
    await person.redeem(answer.permit, proposed, execution=f"execution-{call_id}")
    return proposed


async def test_a_correction_after_the_end_is_judged_with_the_words_before_it(gate, ana, call):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    gate.clock.advance(KEEP - 1)
    later = await ana.begin(CHANGED, request="request-2", continues=task)
    assert (await ana.evaluate(transfer(call, OTHER), task_id=later)).decision == ALLOW
    assert (await ana.evaluate(transfer(call, KNOWN, "c2"), task_id=later)).decision != ALLOW


async def test_what_was_done_is_not_done_in_another_way_unasked(gate, ana, call):
    task = await ana.begin(ASKED)
    await run_once(ana, call, task, KNOWN, "c1")
    await ana.end_task(task, keep=KEEP)
    later = await ana.begin(CHANGED, request="request-2", continues=task)
    assert (await ana.evaluate(transfer(call, OTHER, "c2"), task_id=later)).decision == AUTH


async def test_when_its_time_is_up_nobody_goes_on_from_it_and_nothing_is_kept_of_it(gate, ana, refused):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    assert gate.count("task_pieces") == 1
    gate.clock.advance(KEEP)
    refusal = await refused(ana.begin(CHANGED, request="request-2", continues=task))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "TASK_NOT_FOUND")
    await gate.riskgate.tasks.prune()
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 0)


async def test_ended_again_without_keep_it_is_erased_at_once_and_ended_once_in_the_log(gate, ana, refused):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    await ana.end_task(task)
    assert gate.count("task_pieces") == 0
    assert (await refused(ana.begin(CHANGED, request="request-2", continues=task))).reason == "TASK_NOT_FOUND"
    assert len(gate.records("task_ended")) == 1


async def test_it_takes_no_call_no_result_and_no_words_any_more(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    for attempt, reason in (
        (ana.observe(task, result_text="x"), "TASK_ENDED"),
        (ana.begin(ASKED), "TASK_ENDED"),
        (ana.evaluate(transfer(call), task_id=task), "TASK_NOT_FOUND"),
    ):
        assert (await refused(attempt)).reason == reason


async def test_a_permit_of_its_calls_is_not_renewed(gate, ana, call):
    task = await ana.begin(ASKED)
    assert (await ana.evaluate(transfer(call), task_id=task)).permit
    await ana.end_task(task, keep=3_600)
    gate.clock.advance(gate.settings.permit_ttl_seconds + 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (again.permit, again.reasons[0].code) == ("", "TASK_ENDED")


async def test_it_lasts_as_long_as_the_task_that_goes_on_from_it_and_ends_with_that(gate, ana, call):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    later = await ana.begin(CHANGED, request="request-2", continues=task)
    gate.clock.advance(3_600)
    await gate.riskgate.tasks.prune()
    assert (await ana.evaluate(transfer(call, OTHER), task_id=later)).decision == ALLOW
    await ana.end_task(later)
    assert gate.count("task_pieces") == 0


async def test_a_kept_chain_goes_on_and_its_time_runs_from_the_last_end(gate, ana, call, refused):
    task, third = await ana.begin(ASKED), "kim@acme.es"
    await ana.end_task(task, keep=KEEP)
    later = await ana.begin(CHANGED, request="request-2", continues=task)
    gate.clock.advance(KEEP)
    await ana.end_task(later, keep=KEEP)
    gate.clock.advance(KEEP - 1)
    last = await ana.begin(f"sorry, {third}", request="request-3", continues=later)
    assert (await ana.evaluate(transfer(call, third), task_id=last)).decision == ALLOW
    await ana.end_task(last, keep=KEEP)
    gate.clock.advance(KEEP)
    await gate.riskgate.tasks.prune()
    assert gate.count("task_pieces") == 0
    assert (await refused(ana.begin("sorry", request="request-4", continues=last))).reason == "TASK_NOT_FOUND"


@pytest.mark.parametrize("told", ["late", "again"])
async def test_an_end_told_late_or_twice_takes_nothing_from_the_task_that_goes_on(gate, ana, call, told):
    task = await ana.begin(ASKED)
    if told == "again":
        await ana.end_task(task, keep=KEEP)
    later = await ana.begin(CHANGED, request="request-2", continues=task)
    await ana.end_task(task, keep=KEEP)
    gate.clock.advance(KEEP + 1)
    await gate.riskgate.tasks.prune()
    assert (await ana.evaluate(transfer(call, OTHER), task_id=later)).decision == ALLOW
    await ana.end_task(later, keep=KEEP)
    gate.clock.advance(KEEP + 1)
    await gate.riskgate.tasks.prune()
    assert gate.count("task_pieces") == 0


async def test_a_refusal_after_the_end_voids_what_was_allowed_and_closes_what_waits(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    permit = (await ana.evaluate(transfer(call), task_id=task)).permit
    await ana.end_task(task, keep=KEEP)
    await ana.begin("No, stop", request="request-2", continues=task)
    assert (await refused(ana.redeem(permit, transfer(call)))).reason == "PERMIT_RETRACTED"


async def test_another_user_and_another_thread_cannot_go_on_from_it(gate, ana, refused):
    task = await ana.begin(ASKED)
    await ana.end_task(task, keep=KEEP)
    ben = gate.person("ben")
    for attempt in (
        ben.begin(CHANGED, request="request-2", continues=task),
        ana.begin(CHANGED, request="request-3", thread="t2", continues=task),
    ):
        assert (await refused(attempt)).reason == "TASK_NOT_FOUND"


@pytest.mark.parametrize("keep", [-1, 3_601, 2**62])
async def test_a_time_out_of_bounds_is_refused_by_its_field(gate, ana, refused, keep):
    task = await ana.begin(ASKED)
    refusal = await refused(ana.end_task(task, keep=keep))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert refusal.fields == ["keep"]


async def test_more_than_a_user_may_have_open_is_not_kept(gate, ana, monkeypatch):
    monkeypatch.setattr(gate.riskgate.tasks, "_settings", gate.settings.model_copy(update={"tasks_per_user": 1}))
    for number in (1, 2):
        await ana.end_task(await ana.begin(ASKED, request=f"request-{number}"), keep=KEEP)
    assert gate.count("task_pieces") == 1
