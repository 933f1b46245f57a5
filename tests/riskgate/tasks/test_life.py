"""The lifecycle of a task: observations are stored once, and end with its time."""

from __future__ import annotations

import grpc
import pytest
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import NotFound

from tests.support.riskgate.task_indexes import calls_in

ANA = Principal("ana", "acme", frozenset({"caller"}))
DAY = 86_400


async def counts(gate, task_id: str, thread: str = "t1", who: Principal = ANA) -> bool:
    """Return whether Evaluate would go by the task."""
    try:
        return bool(await gate.riskgate.tasks.index_for(who, task_id, thread))
    except NotFound:
        return False


async def test_a_task_is_begun_shown_a_result_and_ended(gate, ana, refused):
    task = await ana.begin("Lee notas.txt, por favor")
    answer = await ana.observe(task, arguments_json='{"path":"notas.txt"}', result_text="hola mundo")
    assert (answer.cut, answer.replayed) == (False, False)
    assert await counts(gate, task)
    await ana.end_task(task)
    await ana.end_task(task)
    assert not await counts(gate, task)
    assert gate.count("task_pieces") == 0
    assert (await refused(ana.observe(task, "c2", result_text="x"))).reason == "TASK_ENDED"
    assert [record["kind"] for record in gate.records("task_begun", "task_ended")] == ["task_begun", "task_ended"]


async def test_the_same_request_begins_one_task_and_other_words_are_refused(gate, ana, refused):
    task = await ana.begin("Paga la luz")
    assert await ana.begin("Paga la luz") == task
    for other in (ana.begin("Paga el gas"), ana.begin("Paga la luz", thread="t2")):
        refusal = await refused(other)
        assert (refusal.code, refusal.reason, refusal.metadata) == (
            grpc.StatusCode.ALREADY_EXISTS,
            "TASK_CONFLICT",
            {"task_id": task},
        )
    assert await ana.begin("Paga el gas", request="request-2") != task
    assert gate.count("tasks") == 2
    await ana.end_task(task)
    assert (await refused(ana.begin("Paga la luz"))).reason == "TASK_ENDED"


async def test_the_same_result_changes_nothing_and_another_is_refused(gate, ana, refused):
    task = await ana.begin()
    shown = {"arguments_json": '{"path":"a"}', "result_json": '{"text":"uno dos"}'}
    first = await ana.observe(task, **shown)
    again = await ana.observe(task, **shown)
    assert (again.values, again.cut, again.replayed) == (first.values, first.cut, True)
    for other in (
        {**shown, "result_json": '{"text":"uno tres"}'},
        {**shown, "arguments_json": '{"path":"b"}'},
        {**shown, "failed": True},
        {**shown, "tool": "echo"},
        {"arguments_json": shown["arguments_json"], "result_text": shown["result_json"]},
        {"arguments_json": shown["arguments_json"]},
    ):
        refusal = await refused(ana.observe(task, **other))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "TASK_CONFLICT"), other
    assert gate.count("task_pieces") == 2


async def test_results_count_whatever_their_order_and_whether_their_call_was_ever_asked(gate, ana):
    task = await ana.begin()
    for call_id in ("c9", "c1", "never-evaluated"):
        assert not (await ana.observe(task, call_id, result_text=f"text of {call_id}")).replayed
    assert calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1")) == ["c9", "c1", "never-evaluated"]


async def test_a_task_ends_with_its_time_and_its_request_begins_another(gate, ana, refused):
    task = await ana.begin()
    gate.clock.advance(DAY - 1)
    await ana.observe(task, result_text="x")
    assert await counts(gate, task)
    gate.clock.advance(1)
    assert not await counts(gate, task)
    for attempt in (ana.observe(task, "c2", result_text="y"), ana.end_task(task)):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "TASK_NOT_FOUND")
    other = await ana.begin("otras palabras")
    assert other != task
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 1)


@pytest.mark.parametrize("hours", [1, -1])
async def test_a_clock_that_was_an_hour_off_loses_no_task(gate, ana, hours):
    gate.clock.advance(3_600 * hours)
    task = await ana.begin()
    gate.clock.advance(-3_600 * hours)
    assert await counts(gate, task)
    assert await ana.begin() == task
    assert not (await ana.observe(task, result_text="x")).replayed
    gate.clock.advance(DAY - 1 - (3_600 if hours < 0 else 0))
    gate.clock.advance(3_600)
    assert await gate.riskgate.tasks.prune() == 0
    gate.clock.advance(-3_600)
    assert await counts(gate, task)


async def test_what_is_over_is_removed_after_an_hour_and_nothing_else(gate, ana):
    task = await ana.begin()
    await ana.observe(task, result_text="x")
    gate.clock.advance(10)
    later = await ana.begin("y", request="request-2")
    gate.clock.advance(DAY + 3_600 - 10)
    assert await gate.riskgate.tasks.prune() == 1
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 1)
    assert await gate.riskgate.tasks.prune() == 0
    gate.clock.advance(10)
    assert await gate.riskgate.tasks.prune() == 1
    assert later != task
