"""Router: dispatches on state alone and never classifies again."""

from __future__ import annotations

from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import is_sticker, opening, with_message
from phylactery_agent.graph.core.output_inspection import said_findings
from phylactery_agent.graph.core.state import AgentState, ChatMessage
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import APPROVAL_DECIDED, parse_reply

STICKER: Final = "STICKER"
Target = Literal["ApprovalHandler", "Supervisor", "Planner", "Finalizer"]


def route(state: AgentState) -> tuple[Target, str, str]:
    """Return the target of a turn, the reason, and the directive for Supervisor."""
    reply = parse_reply(state["incoming"]["text"])
    if state["awaiting_approval"]:
        if reply is not None or state["intent"] == APPROVAL_DECIDED:
            return "ApprovalHandler", "APPROVAL_REPLY", ""
        return "Supervisor", "APPROVAL_WAITING", "approval_waiting"
    if state["awaiting_user_input"]:
        return "Supervisor", "USER_INPUT_WAITING", "user_input"
    if state["intent"] == "conversation":
        return "Finalizer", STICKER if is_sticker(state) else "CONVERSATION", ""
    if state["intent"] == "task":
        return ("Supervisor", "TASK_RESUMED", "") if state["plan"] else ("Planner", "NEW_TASK", "")
    return "Supervisor", "DEFAULT", "approval_reply" if reply is not None else ""


async def router(
    state: AgentState, runtime: Runtime[TurnContext]
) -> Command[Literal["ApprovalHandler", "Supervisor", "Planner", "Finalizer"]]:
    """Open a turn: add the message to the window, count supersteps from here, and dispatch."""
    target, reason, directive = route(state)
    return Command(goto=target, update=await opened(state, runtime.context, target, reason, directive))


async def opened(state: AgentState, context: TurnContext, target: str, reason: str, directive: str) -> dict[str, Any]:
    """Emit how the turn is routed, and return its beginning: the message in the window, and nothing to say yet."""
    await context.events.emit(*said_findings(context.findings), *opening(state, target, reason))
    incoming = state["incoming"]
    messages = state["messages"]
    if incoming["text"]:
        messages = with_message(messages, ChatMessage(id=incoming["id"], role="user", content=incoming["text"]))
    return {
        "messages": messages,
        "directive": directive,
        "notes": [say("sticker", state["language"])] if reason == STICKER else [],
        "quoted": {},
        "model_away": "",
        "budgets": {**state["budgets"], "supersteps": 0},
    }
