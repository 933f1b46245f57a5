"""Static mode: reasoner counts and decides, tool_selector chooses by the tools' own patterns, echo first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, Literal, TypeVar

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.disabled_tools import left_told, likely_told, not_planned, not_understood
from phylactery_agent.graph.core.guards import STEP_LIMIT
from phylactery_agent.graph.llm.asking import still_away_note
from phylactery_agent.graph.react.effects import room_for_a_call
from phylactery_agent.graph.react.state import ReactMetadata, ReactState, Selected, ended, limit_note
from phylactery_agent.i18n.help import talk_text
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import talk_kind
from phylactery_agent.rules.planner import Reading, read_aside, read_request
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import ECHO

BLOCKED: Final = "BLOCKED"
TOOL_FAILED: Final = "TOOL_FAILED"

T = TypeVar("T")


def passes(user_query: str, tools: ToolRegistry) -> list[Selected]:
    """Return the calls of an episode in order: echo first, then those the rules read from the request."""
    read = [
        Selected(tool=readings[0].tool, args=readings[0].args, text=readings[0].text)
        for readings in read_request(user_query, tools).clauses
    ]
    if read and read[0]["tool"] == ECHO.name:
        return read
    return [_echo_of(user_query), *read]


async def aside(state: ReactState, work: Callable[[], T]) -> T:
    """Return ``work``'s result for the request; a long request is processed off the event loop."""
    return await read_aside((state["tenant"], state["user_id"]), state["user_query"], work)


def echo_pass(user_query: str, tools: ToolRegistry) -> Selected:
    """Return the deterministic echo: the text the request asks to be echoed, otherwise the request itself."""
    echoes = (call for clause in read_request(user_query, tools).clauses for call in clause if call.tool == ECHO.name)
    found = next(echoes, None)
    if found is not None:
        return Selected(tool=found.tool, args=found.args, text=found.text)
    return _echo_of(user_query)


def _echo_of(user_query: str) -> Selected:
    return Selected(tool=ECHO.name, args={"text": user_query}, text=user_query)


async def reasoner(state: ReactState, runtime: Runtime[TurnContext]) -> Command[Literal["tool_selector", "critic"]]:
    """Count the step and decide whether to continue or to close."""
    return await aside(state, lambda: _reasoned(state, runtime.context))


def _reasoned(state: ReactState, context: TurnContext) -> Command[Literal["tool_selector", "critic"]]:
    tools = context.tools
    update: dict[str, Any] = {"step": state["step"] + 1}
    ready = ReactMetadata(**{**state["metadata"], "ready_to_answer": True})
    if (stopped := _stopped(state, tools)) is not None:
        return Command(goto="critic", update={**update, **stopped, "metadata": ready})
    if len(state["plan"]) >= len(passes(state["user_query"], tools)):
        reading = read_request(state["user_query"], tools)
        if reading.left:
            told = left_told(reading, state["language"], tools)
            update["notes"] = [*state["notes"], *told]
        if not reading.clauses:
            update["notes"] = [*state["notes"], *_instead_of_a_call(state, reading, context)]
        return Command(goto="critic", update={**update, "metadata": ready})
    return Command(goto="tool_selector", update=update)


async def tool_selector(state: ReactState, runtime: Runtime[TurnContext]) -> Command[Literal["tool_executor"]]:
    """Select the next call of the episode."""
    tools = runtime.context.tools
    chosen = (await aside(state, lambda: passes(state["user_query"], tools)))[len(state["plan"])]
    return Command(
        goto="tool_executor", update={"metadata": ReactMetadata(**{**state["metadata"], "selected": chosen})}
    )


def _instead_of_a_call(state: ReactState, reading: Reading, context: TurnContext) -> list[str]:
    """Return the reply if the rules found nothing to call: small talk, a doubt, or that it was not understood."""
    language, tools = state["language"], context.tools
    if kind := talk_kind(state["user_query"]):
        return [talk_text(kind, state["user_query"], language, tools, context.begins)]
    away = bool(still_away_note(state))
    likely = state["incoming"].get("likely")
    if told := likely_told(likely, language, state["user_query"], tools, model_away=away):
        return [told]
    if note := not_planned(reading, language, state["user_query"], tools):
        return [note]
    if still := still_away_note(state):
        return [] if state["notes"] else [still]
    return [not_understood(reading, language, state["user_query"])]


def _stopped(state: ReactState, tools: ToolRegistry) -> dict[str, Any] | None:
    """Return how the episode stops: a call was refused or failed, or a budget is exhausted; None if it continues."""
    whole = passes(state["user_query"], tools)
    undone = [chosen["text"] for chosen in whole[len(state["plan"]) :]]
    last = state["steps"].get(str(state["current_step"]))
    if last is not None and last["status"] == "blocked":
        return ended(state, "done", BLOCKED, undone=undone)
    if last is not None and last["status"] == "failed":
        return ended(state, "failed", TOOL_FAILED, state["errors"][-1]["text"], undone=undone)
    if not undone:
        return None
    spent = STEP_LIMIT if state["step"] >= state["max_steps"] else room_for_a_call(state)
    return ended(state, "failed", spent, limit_note(state, spent), undone=undone) if spent else None
