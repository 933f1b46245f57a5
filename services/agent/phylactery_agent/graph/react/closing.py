"""The end of an episode: critic reviews the answer, finalizer fills the final block and sends the reply."""

from __future__ import annotations

from typing import Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Command

from phylactery_agent.graph.core.events import reply_id, with_message
from phylactery_agent.graph.core.output_inspection import checked_reply, joined
from phylactery_agent.graph.core.state import ChatMessage, Reply
from phylactery_agent.graph.react.state import FinalBlock, ReactMetadata, ReactState
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import TurnContext

NO_EVIDENCE: Final = "no_evidence"
HAS_ERRORS: Final = "errors"
UNFINISHED: Final = "unfinished"
_LOST_BY_AN_ISSUE: Final = 0.25
_LEAST: Final = 0.1


async def critic(
    state: ReactState,
    runtime: Runtime[TurnContext],  # noqa: ARG001 - the form of every node
) -> Command[Literal["finalizer"]]:
    """Record the objections to the answer and lower its confidence accordingly."""
    found = {
        NO_EVIDENCE: not state["working_memory"],
        HAS_ERRORS: bool(state["errors"]),
        UNFINISHED: state["run_status"] == "failed",
    }
    issues = [name for name, there in found.items() if there]
    # Without evidence the confidence is already low.
    lost = _LOST_BY_AN_ISSUE * len([name for name in issues if name != NO_EVIDENCE])
    return Command(
        goto="finalizer",
        update={
            "confidence": round(max(state["confidence"] - lost, _LEAST), 2),
            "metadata": ReactMetadata(**{**state["metadata"], "issues": issues}),
        },
    )


async def finalizer(state: ReactState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Send the result of the turn, inspected if it quotes; an episode that ended stores it as the final block.

    The block's evidence and confidence are for inspecting a run, not for the person.
    """
    running = state["run_status"] == "running"
    text = await _summary(state, runtime.context)
    final: FinalBlock | None = None
    if state["user_query"] and state["run_status"] != "suspended":
        final = FinalBlock(summary=text, evidence_keys=sorted(state["working_memory"]), confidence=state["confidence"])
    if state["memory_degraded"]:
        text = f"{text}\n\n{say('memory_degraded', state['language'])}"
    if state["do_not_store"]:
        text = f"{text}\n\n{say('not_stored', state['language'])}"
    reply = Reply(id=reply_id(state["run_id"], state["turn_id"]), text=text)
    said = ChatMessage(id=reply["id"], role="assistant", content=text)
    return Command(
        goto="__end__",
        update={
            "reply": reply,
            "final": final,
            "messages": state["messages"]
            if state["run_status"] == "suspended"
            else with_message(state["messages"], said),
            "notes": [],
            "quoted": {},
            "run_status": "done" if running else state["run_status"],
            "finish_reason": "ANSWERED" if running else state["finish_reason"],
        },
    )


async def _summary(state: ReactState, context: TurnContext) -> str:
    """Return the model's words, or built-in sentences otherwise.

    Both include what went wrong, and nothing uninspected.
    """
    notes, quoted, answer = state["notes"], state["quoted"], state["metadata"]["answer"]
    errors = [error for error in state["errors"] if error["text"] and error["text"] not in notes]
    wrong = [error["text"] for error in errors]
    unquoted = [error.get("instead", error["text"]) for error in errors]
    instead = "\n\n".join([joined(notes, quoted, withheld=True), *unquoted]).strip()
    if answer and state["run_status"] != "suspended":
        limits = [note for place, note in enumerate(notes) if str(place) not in quoted]
        return await checked_reply(state, context, "\n\n".join([answer, *limits, *wrong]), instead)
    text = "\n\n".join([joined(notes, quoted, withheld=False), *wrong]).strip()
    foreign = bool(quoted) or bool(wrong)
    return await checked_reply(state, context, text, instead) if foreign else text
