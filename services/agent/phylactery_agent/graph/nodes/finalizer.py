"""Finalizer: says in one message what the turn came to, and ends it."""

from __future__ import annotations

from typing import Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.common import stable_id, with_message
from phylactery_agent.graph.state import AgentState, ChatMessage, Reply
from phylactery_agent.ports import TurnContext
from phylactery_agent.static.intents import talk_kind
from phylactery_agent.texts import say, tool_list
from phylactery_agent.tools.registry import offered_tools


async def finalizer(
    state: AgentState,
    runtime: Runtime[TurnContext],  # noqa: ARG001 - the form of every node
) -> Command[Literal["__end__"]]:
    """Writes the reply under an id that depends on run and turn alone, so that it is said once."""
    running = state["run_status"] == "running"
    text = "\n\n".join(state["notes"]) if state["notes"] else _talk(state)
    if state["memory_degraded"]:
        text = f"{text}\n\n{say('memory_degraded', state['language'])}"
    reply = Reply(id=stable_id("msg", state["run_id"], state["turn_id"]), text=text)
    return Command(
        goto="__end__",
        update={
            "reply": reply,
            "messages": with_message(state["messages"], ChatMessage(id=reply["id"], role="assistant", content=text)),
            "notes": [],
            "directive": "",
            "run_status": "done" if running else state["run_status"],
            "finish_reason": "ANSWERED" if running else state["finish_reason"],
        },
    )


def _talk(state: AgentState) -> str:
    """Answers small talk; with help, what the agent can do."""
    language = state["language"]
    kind = talk_kind(state["incoming"]["text"]) or "help"
    name = _name(state) if kind == "greeting" else ""
    if name:
        return say("greeting_by_name", language, name=name)
    return say(kind, language, tools=tool_list(offered_tools(), language))


def _name(state: AgentState) -> str:
    """Answers what the person wants to be called, empty where the profile does not say."""
    known = {fact["name"]: fact["value"] for fact in state["profile"]}
    return str(known.get("name.preferred") or known.get("name") or "")
