"""State of the react graph: its own fields plus those the shared effect nodes need, as plain JSON values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, TypedDict

from phylactery_agent.graph.core import state as shared
from phylactery_agent.graph.core.guards import MAX_TOOL_CALLS, STEP_LIMIT, TOOL_CALL_LIMIT
from phylactery_agent.graph.core.state import AgentState, StepState
from phylactery_agent.i18n.texts import error_text, say, shortened
from phylactery_agent.ports import Turn

MAX_STEPS: Final = 8
"""How often reasoner or model may run in one run."""
TOOL_ROUNDS: Final = 3
"""How often a model may propose calls in one run; each time it may propose several."""


@dataclass(frozen=True, slots=True)
class ReactOptions:
    """The deployment's options for the graph."""

    max_steps: int = MAX_STEPS
    tool_rounds: int = TOOL_ROUNDS
    llm_fallback: bool = False
    """Whether echo runs if the prompt asks for it and the model does not call it."""


class Selected(TypedDict):
    """The call chosen by tool_selector or fallback; tool_executor clears it."""

    tool: str
    args: dict[str, Any]
    text: str


class Artifact(TypedDict):
    """A call's output by reference: the text is in working_memory under the key, or under the pointer."""

    key: str
    step_id: str
    tool: str
    status: str
    size_chars: int
    pointer: str
    error_code: str


class ReactError(TypedDict):
    """One error, as a stable code and as the person's text."""

    step_id: str
    tool: str
    code: str
    text: str
    instead: NotRequired[str]
    """The substitute if the text quotes content that could not be inspected."""


class ReactMetadata(TypedDict):
    """Metadata of the episode.

    mode is the last active mode: a model that becomes unavailable leaves the rest to the rules.
    """

    mode: Literal["static", "llm"]
    selected: Selected | None
    ready_to_answer: bool
    answer: str
    """A model's last words, not yet inspected."""
    fallback: bool
    llm_fallback: bool
    tool_rounds: int
    max_tool_rounds: int
    corrections: int
    issues: list[str]
    """Issues found by critic."""


class FinalBlock(TypedDict):
    """The result of the episode."""

    summary: str
    evidence_keys: list[str]
    confidence: float


class ReactState(AgentState):
    """The complete state of a thread in the react graph."""

    user_query: str
    working_memory: dict[str, str]
    artifacts: list[Artifact]
    errors: list[ReactError]
    confidence: float
    step: int
    max_steps: int
    metadata: ReactMetadata
    final: FinalBlock | None


def episode(options: ReactOptions) -> dict[str, Any]:
    """Return the initial fields of an episode."""
    return {
        "user_query": "",
        "working_memory": {},
        "artifacts": [],
        "errors": [],
        "confidence": 0.0,
        "step": 0,
        "max_steps": options.max_steps,
        "metadata": ReactMetadata(
            mode="static",
            selected=None,
            ready_to_answer=False,
            answer="",
            fallback=False,
            llm_fallback=options.llm_fallback,
            tool_rounds=0,
            max_tool_rounds=options.tool_rounds,
            corrections=0,
            issues=[],
        ),
        "final": None,
    }


def new_run_input(turn: Turn, options: ReactOptions = ReactOptions()) -> dict[str, Any]:
    """Return the graph's input for a new run, with every field of the previous run reset."""
    return {**shared.new_run_input(turn), **episode(options)}


def reentry_input(turn: Turn) -> dict[str, Any]:
    """Return the graph's input for resuming a suspended run, with the episode unchanged."""
    return shared.reentry_input(turn)


TOOL_ROUND_LIMIT: Final = "TOOL_ROUND_LIMIT"
"""The model asked for tools more often than allowed."""


def first_pending(state: ReactState) -> StepState | None:
    """Return the next call of the queue, in plan order."""
    steps = (state["steps"][planned["id"]] for planned in state["plan"])
    return next((step for step in steps if step["status"] == "pending"), None)


def ended(
    state: ReactState,
    status: Literal["done", "failed"],
    reason: str,
    *notes: str,
    undone: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the update that ends the episode and notes what was left undone: queued calls and undone."""
    steps = [state["steps"][planned["id"]] for planned in state["plan"]]
    left = [step["description"] for step in steps if step["status"] == "pending"] + [shortened(text) for text in undone]
    told = [say("not_done", state["language"], steps="; ".join(left))] if left else []
    return {"run_status": status, "finish_reason": reason, "notes": [*state["notes"], *notes, *told]}


def failure(state: ReactState, step_id: str, code: str, told: str = "") -> ReactError:
    """Return an error of the episode; without a specific text, the code's text is used."""
    step = state["steps"].get(step_id)
    tool = next((planned["tool"] for planned in state["plan"] if planned["id"] == step_id), "")
    if not told and step is not None:
        why = error_text(code, state["language"])
        told = say("step_failed", state["language"], step=step["description"], tries=1, error=why)
    return ReactError(step_id=step_id, tool=tool, code=code, text=told)


def limit_note(state: ReactState, reason: str) -> str:
    """Return the sentence about an exhausted budget."""
    if reason == TOOL_CALL_LIMIT:
        return say("tool_limit", state["language"], limit=MAX_TOOL_CALLS)
    if reason == STEP_LIMIT:
        return say("react_step_limit", state["language"])
    if reason == TOOL_ROUND_LIMIT:
        return say("react_round_limit", state["language"])
    return error_text(reason, state["language"])
