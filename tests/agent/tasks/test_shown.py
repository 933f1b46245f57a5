"""Results as reported to RiskGate: text or JSON, truncated if long, and nothing chosen by a planner."""

from __future__ import annotations

import dataclasses
import inspect

import pytest
from phylactery_agent.graph.core.state import AgentState, PlannedStep, ProposedTool
from phylactery_agent.ports import Gate, Turn
from phylactery_agent.ports import ProposedCall as Proposed
from phylactery_agent.runtime.turn.tasks import MAX_RESULT_BYTES, Result, observation
from phylactery_agent.tools.registry import TOOL_REGISTRY, ensure_tools_registered

JSON_TOOL = "json_tool"


@pytest.fixture
def json_tool(monkeypatch: pytest.MonkeyPatch) -> str:
    """A tool whose contract says that it answers JSON."""
    ensure_tools_registered()
    echo = TOOL_REGISTRY["echo"]
    contract = dataclasses.replace(echo.contract, answers="json")
    monkeypatch.setitem(TOOL_REGISTRY, JSON_TOOL, dataclasses.replace(echo, name=JSON_TOOL, contract=contract))
    return JSON_TOOL


@pytest.mark.parametrize(
    ("output", "failed", "form"),
    [
        ('[{"id": 1}]', False, "result_json"),
        ("not JSON", False, "result_text"),
        ('{"error": 1}', True, "result_text"),
        ('"' + "x" * MAX_RESULT_BYTES + '"', False, "result_text"),
        ("[" * 100_000, False, "result_text"),
    ],
    ids=["json", "text", "failed", "too long", "too deep"],
)
def test_only_json_of_a_tool_that_answers_json_is_shown_as_json(
    json_tool: str, output: str, failed: bool, form: str
) -> None:
    shown = observation("task_1", "run_1", json_tool, "c1", Result("{}", output, failed))
    assert {"result_json", "result_text"} & shown.keys() == {form}


def test_a_text_that_looks_like_json_stays_text_for_whoever_wrote_it_would_choose_the_fields() -> None:
    ensure_tools_registered()
    shown = observation("task_1", "run_1", "read_file", "c1", Result("{}", '{"id": "chosen"}', failed=False))
    assert shown["result_text"] == '{"id": "chosen"}'
    assert "result_json" not in shown


@pytest.mark.parametrize("letter", ["x", "ñ", "𐍈"])
def test_a_result_over_the_limit_is_cut_and_says_how_much_is_missing(letter: str) -> None:
    whole = letter * (2 * MAX_RESULT_BYTES // len(letter.encode()))
    shown = observation("task_1", "run_1", "read_file", "c1", Result("{}", whole, failed=False))["result_text"]
    assert MAX_RESULT_BYTES - 8 <= len(shown.encode()) <= MAX_RESULT_BYTES
    kept, _, said = shown.partition("\n[cut here: ")
    assert whole.startswith(kept)
    assert said == f"{len((whole[len(kept) :]).encode())} of {len(whole.encode())} bytes were not shown]"
    fits = letter * (MAX_RESULT_BYTES // len(letter.encode()))
    assert observation("task_1", "run_1", "read_file", "c1", Result("{}", fits, failed=False))["result_text"] == fits


def test_nothing_answered_is_nothing_shown() -> None:
    shown = observation("task_1", "run_1", "echo", "c1", Result("{}", "", failed=True))
    assert not {"result_json", "result_text"} & shown.keys()


def test_nothing_a_planner_makes_can_name_a_task_or_an_origin() -> None:
    """What the graph holds and asks with has no place for either: a task is the runtime's word alone."""
    names = {
        *inspect.signature(Gate.evaluate).parameters,
        *inspect.signature(Gate.redeem).parameters,
        *(field.name for cls in (Proposed, Turn) for field in dataclasses.fields(cls)),
        *AgentState.__annotations__,
        *PlannedStep.__annotations__,
        *ProposedTool.__annotations__,
    }
    assert not [name for name in names if "task" in name or "origin" in name]
    assert not hasattr(Gate, "begin_task")
