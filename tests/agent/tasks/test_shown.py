"""Results as reported to RiskGate: text or JSON, truncated if long, and nothing chosen by a planner."""

from __future__ import annotations

import dataclasses
import inspect
from typing import Any

import pytest
from phylactery_agent.graph.core.state import AgentState, PlannedStep, ProposedTool
from phylactery_agent.graph.llm.conversation import MAX_RESULT
from phylactery_agent.ports import Gate, Turn
from phylactery_agent.ports import ProposedCall as Proposed
from phylactery_agent.runtime.turn.tasks import MAX_RESULT_BYTES, Result, observation
from phylactery_agent.tools.contract import ToolSpec
from phylactery_agent.tools.registry import ToolRegistry

TOOLS = ToolRegistry()
ECHO, READ_FILE = TOOLS["echo"], TOOLS["read_file"]
JSON_TOOL = dataclasses.replace(ECHO, name="json_tool", contract=dataclasses.replace(ECHO.contract, answers="json"))


def shown_of(tool: ToolSpec, output: str, *, failed: bool = False) -> dict[str, Any]:
    return observation("task_1", "run_1", tool.name, "c1", Result("{}", output, failed), spec=tool)


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
def test_only_json_of_a_tool_that_answers_json_is_shown_as_json(output: str, failed: bool, form: str) -> None:
    shown = shown_of(JSON_TOOL, output, failed=failed)
    assert {"result_json", "result_text"} & shown.keys() == {form}


def test_a_text_that_looks_like_json_stays_text_for_whoever_wrote_it_would_choose_the_fields() -> None:
    shown = shown_of(READ_FILE, '{"id": "chosen"}')
    assert shown["result_text"] == '{"id": "chosen"}'
    assert "result_json" not in shown


@pytest.mark.parametrize("letter", ["x", "ñ", "𐍈"])
def test_a_result_over_the_limit_is_cut_and_says_how_much_is_missing(letter: str) -> None:
    whole = letter * (2 * MAX_RESULT_BYTES // len(letter.encode()))
    shown = shown_of(READ_FILE, whole)["result_text"]
    assert MAX_RESULT_BYTES - 8 <= len(shown.encode()) <= MAX_RESULT_BYTES
    kept, _, said = shown.partition("\n[cut here: ")
    assert whole.startswith(kept)
    assert said == f"{len((whole[len(kept) :]).encode())} of {len(whole.encode())} bytes were not shown]"
    fits = letter * (MAX_RESULT_BYTES // len(letter.encode()))
    assert shown_of(READ_FILE, fits)["result_text"] == fits


@pytest.mark.parametrize(("size", "partial"), [(MAX_RESULT, False), (MAX_RESULT + 1, True), (120_000, True)])
def test_a_result_of_which_a_model_is_shown_only_a_part_says_so(size: int, partial: bool) -> None:
    assert shown_of(READ_FILE, "x" * size).get("partial", False) is partial


def test_nothing_answered_is_nothing_shown() -> None:
    shown = shown_of(ECHO, "", failed=True)
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


def test_a_result_with_a_secret_in_it_is_shown_to_a_model_in_part() -> None:
    assert shown_of(READ_FILE, "password: Zapato!2291\nn=1")["partial"]
    assert "partial" not in shown_of(READ_FILE, "Luis 600 123 456, luis@example.org")
