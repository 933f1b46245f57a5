"""Finalizer: reports the result of the turn in one message, inspected if it quotes, and ends the turn."""

from __future__ import annotations

from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import reply_id, with_message
from phylactery_agent.graph.core.output_inspection import checked_reply, joined
from phylactery_agent.graph.core.state import AgentState, ChatMessage, Reply
from phylactery_agent.graph.llm import asking
from phylactery_agent.graph.llm.asking import MODEL_AWAY, model_of, went_away
from phylactery_agent.i18n.help import talk_text
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.expressions import expression
from phylactery_agent.rules.intents import talk_kind

_PLAIN_NAME = expression(r"^\pL[\pL .'-]{0,40}$")
"""A name made of letters only contains no key and no number, so a greeting with it needs no inspection."""


async def finalizer(state: AgentState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Write the reply under an id derived from run and turn alone, so that it is sent once."""
    running = state["run_status"] == "running"
    text, update = await _text(state, runtime.context)
    if state["memory_degraded"]:
        text = f"{text}\n\n{say('memory_degraded', state['language'])}"
    if state["do_not_store"]:
        text = f"{text}\n\n{say('not_stored', state['language'])}"
    reply = Reply(id=reply_id(state["run_id"], state["turn_id"]), text=text)
    return Command(
        goto="__end__",
        update={
            **update,
            "reply": reply,
            "messages": with_message(state["messages"], ChatMessage(id=reply["id"], role="assistant", content=text)),
            "notes": [],
            "quoted": {},
            "directive": "",
            "run_status": "done" if running else state["run_status"],
            "finish_reason": "ANSWERED" if running else state["finish_reason"],
        },
    )


async def _text(state: AgentState, context: TurnContext) -> tuple[str, dict[str, Any]]:
    """Return the reply and its state update: a model's words if it is available, otherwise built-in sentences."""
    update: dict[str, Any] = {}
    words = ""
    model = model_of(state, context)
    try:
        if model is not None and _is_talk(state) and state["incoming"]["text"].strip():
            words = await asking.talk(state, context, model)
        elif model is not None and _has_results(state):
            words = await asking.answer(state, context, model)
    except MODEL_AWAY as error:
        update = await went_away(state, context, error.reason)
    told: dict[str, Any] = {"notes": state["notes"], "quoted": state.get("quoted", {}), **update}
    quoted, notes = told["quoted"], told["notes"]
    away = {"model_away": update["model_away"]} if update else {}
    if _is_talk(state):
        own, foreign = _talk(state, context)
        notes = [own, *notes]
        quoted = {"0": say("greeting", state["language"])} if foreign else {}
    instead = joined(notes, quoted, withheld=True)
    if words:
        return await checked_reply(state, context, words, instead), away
    text = joined(notes, quoted, withheld=False)
    return (await checked_reply(state, context, text, instead) if quoted else text), away


def _is_talk(state: AgentState) -> bool:
    """Return True if the turn is only conversation: nothing was planned and there is nothing to report yet."""
    return not state["notes"]


def _has_results(state: AgentState) -> bool:
    """Return True if a model's plan is done and its results are to be put into words.

    Every other ending is reported in built-in sentences: a reason, a question or an approval must not be reworded.
    """
    done = state["run_status"] == "done" and state["finish_reason"] == "ANSWERED"
    planned = state.get("planned_by") == "model" and bool(state["plan"])
    return done and planned and bool(state.get("results"))


def _talk(state: AgentState, context: TurnContext) -> tuple[str, bool]:
    """Return small talk, with help on what the agent can do, and whether it quotes foreign text."""
    language = state["language"]
    kind = talk_kind(state["incoming"]["text"]) or "help"
    name = _name(state) if kind == "greeting" else ""
    if name:
        return say("greeting_by_name", language, name=name), _PLAIN_NAME.match(name) is None
    return talk_text(kind, state["incoming"]["text"], language, context.tools, context.begins), False


def _name(state: AgentState) -> str:
    """Return the name the person wants to be called, or an empty string if the profile has none."""
    known = {fact["name"]: fact["value"] for fact in state["profile"]}
    return str(known.get("name.preferred") or known.get("name") or "")
