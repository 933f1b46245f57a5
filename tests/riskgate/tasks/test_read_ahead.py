"""BeginTask reads a message and Observe a result, so that no call waits for it; neither is needed for a decision."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_riskgate.domain.intent import said
from phylactery_understanding.replies import behind
from phylactery_understanding.requests.parser import parse

ANA = Principal("ana", "acme", frozenset({"caller"}))
WORDS = "Please write the summary to notes.txt and say that all is well. " * 20
CALL = types_pb2.ToolCall(
    tool="write_file", tool_call_id="c1", arguments_json='{"path":"notes.txt","content":"all is well"}'
)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were parsed, as it happens."""
    texts: list[str] = []

    def noted(text: str):
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(said, "parse", noted)
    monkeypatch.setattr(behind, "parse", noted)
    return texts


async def decided(ana, task: str, call_id: str) -> tuple[int, tuple[str, ...]]:
    call = types_pb2.ToolCall()
    call.CopyFrom(CALL)
    call.tool_call_id = call_id
    answer = await ana.evaluate(call, task_id=task)
    return answer.decision, tuple(one.code for one in answer.reasons)


async def test_the_first_call_of_a_task_reads_no_message_again(ana, parsed):
    task = await ana.begin(WORDS)
    assert parsed
    del parsed[:]
    await decided(ana, task, "c1")
    await decided(ana, task, "c2")
    assert parsed == []


async def test_a_task_that_goes_on_reads_only_its_own_message(ana, parsed):
    first = await ana.begin(WORDS, request="r1")
    await decided(ana, first, "c1")
    del parsed[:]
    second = await ana.begin("Read todo.txt", request="r2", continues=first)
    await decided(ana, second, "c2")
    assert not any("summary" in text for text in parsed)


async def test_a_message_that_is_in_no_memory_is_read_again_with_the_same_result(gate, ana, parsed):
    task = await ana.begin(WORDS)
    before = await decided(ana, task, "c1")
    gate.riskgate.tasks.forget([task])  # as after a restart, or in another replica
    del parsed[:]
    assert await decided(ana, task, "c2") == before
    assert parsed


async def test_a_result_is_read_where_it_is_observed_if_its_task_is_in_memory(gate, ana):
    task = await ana.begin(WORDS)
    await decided(ana, task, "c1")
    await ana.observe(task, "r1", tool="list_files", result_json='[{"name": "a.txt"}, {"name": "b.txt"}]')
    index = await gate.riskgate.tasks.index_for(ANA, task, "t1")
    assert (len(index.results), index.unread) == (1, 0)


async def test_the_reading_of_a_message_goes_with_its_task(gate, ana):
    ended, idle = await ana.begin(WORDS, request="r1"), await ana.begin(WORDS, request="r2")
    memory = gate.riskgate.tasks._indexes._messages
    assert memory.find(ended, 0) is not None
    await ana.end_task(ended)
    assert memory.find(ended, 0) is None
    gate.clock.advance(700)
    await gate.riskgate.tasks.prune()
    assert memory.find(idle, 0) is None
