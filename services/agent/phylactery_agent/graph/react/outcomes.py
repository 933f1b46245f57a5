"""How an episode stops: every way has a named reason, and what was not done is told."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal

from phylactery_agent.graph.guards import MAX_SUPERSTEPS, MAX_TOOL_CALLS, STEP_LIMIT, TOOL_CALL_LIMIT
from phylactery_agent.graph.react.state import ReactError, ReactState
from phylactery_agent.graph.state import StepState
from phylactery_agent.texts import error_text, say, shortened

TOOL_ROUND_LIMIT: Final = "TOOL_ROUND_LIMIT"
"""The model asked for tools once more than it may."""


def first_pending(state: ReactState) -> StepState | None:
    """Answers the next call of the queue, in the order of the plan."""
    steps = (state["steps"][planned["id"]] for planned in state["plan"])
    return next((step for step in steps if step["status"] == "pending"), None)


def ended(
    state: ReactState,
    status: Literal["done", "failed"],
    reason: str,
    *notes: str,
    undone: Sequence[str] = (),
) -> dict[str, Any]:
    """Answers the update that ends the episode, and tells what is left undone: what is queued, and undone."""
    steps = [state["steps"][planned["id"]] for planned in state["plan"]]
    left = [step["description"] for step in steps if step["status"] == "pending"] + [shortened(text) for text in undone]
    told = [say("not_done", state["language"], steps="; ".join(left))] if left else []
    return {"run_status": status, "finish_reason": reason, "notes": [*state["notes"], *notes, *told]}


def failure(state: ReactState, step_id: str, code: str, told: str = "") -> ReactError:
    """Answers an error of the episode; without a sentence of its own the code's is told."""
    step = state["steps"].get(step_id)
    tool = next((planned["tool"] for planned in state["plan"] if planned["id"] == step_id), "")
    if not told and step is not None:
        why = error_text(code, state["language"])
        told = say("step_failed", state["language"], step=step["description"], error=why)
    return ReactError(step_id=step_id, tool=tool, code=code, text=told)


def limit_note(state: ReactState, reason: str) -> str:
    """Answers the sentence about a budget that is spent."""
    if reason == TOOL_CALL_LIMIT:
        return say("tool_limit", state["language"], limit=MAX_TOOL_CALLS)
    if reason == STEP_LIMIT:
        return say("react_step_limit", state["language"], steps=state["max_steps"], limit=MAX_SUPERSTEPS)
    if reason == TOOL_ROUND_LIMIT:
        return say("react_round_limit", state["language"])
    return error_text(reason, state["language"])
