"""Entry of a turn: router, which dispatches on state alone, and planner, which begins the episode."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.beside import beside_told
from phylactery_agent.graph.core.events import (
    AWAITING_APPROVAL,
    approval_standing,
    is_sticker,
    opening,
    waiting_notes,
    with_message,
)
from phylactery_agent.graph.core.output_inspection import said_findings
from phylactery_agent.graph.core.state import ChatMessage, asked_of_rules, with_attachments
from phylactery_agent.graph.llm.asking import model_of
from phylactery_agent.graph.react.state import ReactMetadata, ReactState
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import APPROVAL_DECIDED, parse_reply

Entry = Literal["planner", "ApprovalHandler", "finalizer"]


def route(state: ReactState) -> tuple[Entry, str]:
    """Return the target of a turn and the reason."""
    reply = parse_reply(state["incoming"]["text"])
    if state["awaiting_approval"]:
        if reply is not None or state["intent"] == APPROVAL_DECIDED:
            return "ApprovalHandler", "APPROVAL_REPLY"
        return "finalizer", "APPROVAL_WAITING"
    if reply is not None or state["intent"] == APPROVAL_DECIDED:
        return "finalizer", "NOTHING_WAITS"
    return ("finalizer", "STICKER") if is_sticker(state) else ("planner", "NEW_EPISODE")


async def router(
    state: ReactState, runtime: Runtime[TurnContext]
) -> Command[Literal["planner", "ApprovalHandler", "finalizer"]]:
    """Open a turn: count supersteps from here and dispatch.

    A message that is not an answer leaves pending work unchanged.
    """
    context = runtime.context
    target, reason = route(state)
    await context.events.emit(*said_findings(context.findings), *opening(state, target, reason))
    update: dict[str, Any] = {
        "directive": "",
        "notes": [],
        "quoted": {},
        "model_away": "",
        "budgets": {**state["budgets"], "supersteps": 0},
    }
    if reason == "APPROVAL_WAITING":
        notes = await waiting_notes(state, context)
        update.update(run_status="suspended", finish_reason=AWAITING_APPROVAL, notes=notes)
    elif reason == "STICKER":
        update.update(run_status="done", finish_reason="ANSWERED", notes=[say("sticker", state["language"])])
    elif reason == "NOTHING_WAITS":
        update.update(run_status="done", finish_reason=reason, notes=[await _nothing_waits(state, context)])
    return Command(goto=target, update=update)


async def planner(state: ReactState, runtime: Runtime[TurnContext]) -> Command[Literal["reasoner", "model"]]:
    """Begin the episode: with a model if this run has one, otherwise by the rules."""
    text = state["incoming"]["text"]
    mode: Literal["static", "llm"] = "static" if model_of(state, runtime.context) is None else "llm"
    message = ChatMessage(id=state["incoming"]["id"], role="user", content=with_attachments(state["incoming"]))
    request = asked_of_rules(state["incoming"]) if mode == "static" else text
    update: dict[str, Any] = {
        "agent_mode": "planning",
        "user_query": request,
        "request": request,
        "request_turn": state["turn_id"],
        "request_pathway": state["pathway"],
        "planned_by": "model" if mode == "llm" else "rules",
        "messages": with_message(state["messages"], message),
        "metadata": ReactMetadata(**{**state["metadata"], "mode": mode}),
    }
    if mode == "static" and (beside := await beside_told(state["incoming"], runtime.context, state["language"])):
        update["notes"] = [*state["notes"], *beside]
    return Command(goto="model" if mode == "llm" else "reasoner", update=update)


async def _nothing_waits(state: ReactState, context: TurnContext) -> str:
    reply, language = parse_reply(state["incoming"]["text"]), state["language"]
    if reply is None:
        return say("nothing_waits_at_all", language)
    why = say(f"state_{await approval_standing(context, reply.approval_id)}", language)
    return say("nothing_waits", language, why=why)
