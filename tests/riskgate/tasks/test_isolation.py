"""Another user, tenant or thread tries to use a task of ana's, or to continue it."""

from __future__ import annotations

import grpc
import pytest
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import NotFound

from tests.support.riskgate.task_indexes import calls_in, words_in

ANA = Principal("ana", "acme", frozenset({"caller"}))
STRANGERS = {
    "ben": Principal("ben", "acme", frozenset({"caller"})),
    "ana of another tenant": Principal("ana", "zeta", frozenset({"caller"})),
    "an approver": Principal("carla", "acme", frozenset({"caller", "approver"})),
}


@pytest.fixture(params=["ben", "ben through the agent", "zoe", "ana of another tenant"])
def stranger(request, gate):
    return {
        "ben": gate.person("ben"),
        "ben through the agent": gate.through_agent("ben"),
        "zoe": gate.person("zoe"),
        "ana of another tenant": gate.through_agent("ana", "zeta"),
    }[request.param]


async def words_of(gate, task_id: str, thread: str = "t1") -> set[str]:
    return set(words_in(await gate.riskgate.tasks.index_for(ANA, task_id, thread)))


async def test_a_stranger_cannot_show_end_or_go_on_from_a_task(gate, ana, stranger, refused):
    task = await ana.begin()
    await ana.observe(task, result_text="x")
    for attempt in (
        stranger.observe(task, "c2", result_text="y"),
        stranger.observe(task, result_text="x"),
        stranger.end_task(task),
        stranger.begin("sí", request="r2", continues=task),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "TASK_NOT_FOUND")
        assert refusal.metadata == {"task_id": task}
    assert (await ana.observe(task, result_text="x")).replayed
    assert (gate.count("tasks"), gate.count("task_pieces")) == (1, 2)


@pytest.mark.parametrize("name", STRANGERS)
async def test_no_decision_of_a_stranger_goes_by_a_task_also_once_its_owner_used_it(gate, ana, name):
    task = await ana.begin()
    assert await gate.riskgate.tasks.index_for(ANA, task, "t1")
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await gate.riskgate.tasks.index_for(STRANGERS[name], task, "t1")


async def test_the_same_request_of_a_stranger_begins_a_task_of_their_own(ana, stranger):
    mine, theirs = await ana.begin("mis palabras"), await stranger.begin("otras palabras")
    assert mine != theirs
    assert await ana.begin("mis palabras") == mine


async def test_the_agent_shows_what_belongs_to_the_user_it_names(gate, ana):
    task = await ana.begin("hola")
    agent = gate.through_agent("ana")
    assert await agent.begin("hola") == task
    assert not (await agent.observe(task, result_text="x")).replayed
    assert (await ana.observe(task, result_text="x")).replayed
    (record,) = gate.records("task_begun")
    await agent.end_task(task)
    (ended,) = gate.records("task_ended")
    assert [(one["subject"], one["actor"]) for one in (record, ended)] == [("ana", ""), ("ana", "agent")]


async def test_nobody_without_the_role_caller_shows_anything(gate, refused):
    dora = gate.person("dora")
    for attempt in (dora.begin(), dora.observe("ta_1", result_text="x"), dora.end_task("ta_1")):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")


async def test_a_task_counts_in_its_thread_alone(gate, ana, refused):
    task = await ana.begin()
    with pytest.raises(NotFound, match="TASK_NOT_FOUND"):
        await gate.riskgate.tasks.index_for(ANA, task, "t2")
    assert (await refused(ana.begin(request="r2", thread="t2", continues=task))).reason == "TASK_NOT_FOUND"


async def test_two_tasks_on_one_thread_know_nothing_of_each_other(gate, ana):
    one = await ana.begin("uno", request="r1")
    two = await ana.begin("dos", request="r2")
    await ana.observe(one, "c1", result_text="x")
    await ana.observe(two, "c1", result_text="y")
    await ana.observe(two, "c2", result_text="z")
    shown = [calls_in(await gate.riskgate.tasks.index_for(ANA, task, "t1")) for task in (one, two)]
    assert shown == [["c1"], ["c1", "c2"]]
    assert (await words_of(gate, one), await words_of(gate, two)) == ({"uno"}, {"dos"})
    await ana.end_task(one)
    assert await words_of(gate, two) == {"dos"}


async def test_what_an_earlier_task_was_shown_counts_also_when_it_comes_late(gate, ana):
    first = await ana.begin("paga", request="r1")
    second = await ana.begin("claro", request="r2", continues=first)
    assert await words_of(gate, second) == {"paga", "claro"}
    await ana.observe(second, "c2", result_text="y")
    await ana.observe(first, "c1", result_text="x")
    index = await gate.riskgate.tasks.index_for(ANA, second, "t1")
    assert calls_in(index) == ["c1", "c2"]
    assert await words_of(gate, first) == {"paga"}


async def test_a_task_that_ended_or_is_over_counts_no_more_for_those_after_it(gate, ana):
    first = await ana.begin("paga", request="r1")
    gate.clock.advance(60)
    second = await ana.begin("claro", request="r2", continues=first)
    third = await ana.begin("hazlo", request="r3", continues=second)
    assert await words_of(gate, third) == {"paga", "claro", "hazlo"}
    gate.clock.advance(86_400 - 60)
    assert await words_of(gate, third) == {"claro", "hazlo"}
    await ana.end_task(second)
    assert await words_of(gate, third) == {"hazlo"}


async def test_no_task_goes_on_from_one_that_ended_or_is_over(gate, ana, refused):
    first = await ana.begin("paga", request="r1")
    after = await ana.begin("claro", request="r2", continues=first)
    await ana.end_task(first)
    refusal = await refused(ana.begin("hazlo", request="r3", continues=first))
    assert (refusal.reason, refusal.metadata) == ("TASK_NOT_FOUND", {"task_id": first})
    assert await ana.begin("claro", request="r2", continues=first) == after
    assert await ana.begin("claro", request="r2") == after
    gate.clock.advance(86_400)
    assert (await refused(ana.begin("hazlo", request="r3", continues=after))).reason == "TASK_NOT_FOUND"


async def test_a_long_conversation_counts_ten_tasks_back(gate, ana):
    task = ""
    for number in range(12):
        task = await ana.begin(f"palabra{number}", request=f"r{number}", continues=task)
    assert await words_of(gate, task) == {f"palabra{number}" for number in range(2, 12)}
