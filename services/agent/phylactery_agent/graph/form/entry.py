"""Entry of a turn said in a form: an answer to an approval goes to its handler, anything else to the form."""

from __future__ import annotations

from typing import Any, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_forms.dialogue.filling import prefilled
from phylactery_forms.dialogue.prompts import opening
from phylactery_forms.dialogue.state import ConversationState, all_collected, new_turn

from phylactery_agent.graph.core.state import new_run_input, reentry_input
from phylactery_agent.graph.form.steps import ServedFormState, open_form
from phylactery_agent.graph.secured.nodes.router import opened, route
from phylactery_agent.i18n.texts import say
from phylactery_agent.ports import OpenForm, Turn, TurnContext
from phylactery_agent.rules.intents import APPROVAL_DECIDED, parse_reply

_REASON = "FORM"


def begun(turn: Turn) -> dict[str, Any]:
    """Return the input for a new run."""
    return {**new_run_input(turn), **_form_input(turn)}


def reentered(turn: Turn) -> dict[str, Any]:
    """Return the input for resuming a suspended run: the form as it stands now, and what this run had proposed."""
    again = {key: value for key, value in _form_input(turn).items() if key != "metadata"}
    return {**reentry_input(turn), **again}


def _form_input(turn: Turn) -> dict[str, Any]:
    none = cast("ConversationState", {"asked": None, "status": "submitted"})
    conversation = none if turn.form is None else turn.form.conversation
    return {**new_turn(conversation, turn.text, turn.turn_id), "escalation": None}


async def router(
    state: ServedFormState, runtime: Runtime[TurnContext]
) -> Command[Literal["ApprovalHandler", "Supervisor", "Planner", "Finalizer", "complete", "check_escalation"]]:
    """Open a turn. A form that ended before its next message was served leaves it to the secured graph's nodes."""
    context = runtime.context
    answers = parse_reply(state["incoming"]["text"]) is not None or state["intent"] == APPROVAL_DECIDED
    if context.form is None or state["awaiting_approval"] or answers:
        target, reason, directive = route(state)
        update = await opened(state, context, target, reason, directive)
        told = {} if context.form is None else {"language": state["conversation"]["language"]}
        return Command(goto=target, update={**update, **told})
    metadata = {**state["metadata"], "outcome": ""}
    if context.form.standing:
        return Command(goto="Finalizer", update=await _stands(state, context, metadata))
    if context.form.opens:
        goto, update = await _opens(state, context, metadata)
        return Command(goto=goto, update=update)
    update = await opened(state, context, "check_escalation", _REASON, "")
    notes = _changed(state, context.form)
    more = {"metadata": metadata, "notes": notes, "awaiting_user_input": False}
    return Command(goto="check_escalation", update={**update, **more})


async def _opens(
    state: ServedFormState, context: TurnContext, metadata: dict[str, Any]
) -> tuple[Literal["Finalizer", "complete"], dict[str, Any]]:
    """Begin the form: what its first message gives already is not asked."""
    form, language = open_form(context), state["conversation"]["language"]
    definition, reading = form.definition, form.context(language)
    conversation = prefilled(definition, state["conversation"], state["user_message"], reading, state["turn_id"])
    goto: Literal["Finalizer", "complete"] = "complete" if all_collected(definition, conversation) else "Finalizer"
    update = await opened(state, context, goto, _REASON, "")
    notes = [] if goto == "complete" else [opening(definition, conversation)]
    return goto, {**update, "conversation": conversation, "metadata": metadata, "notes": notes}


async def _stands(state: ServedFormState, context: TurnContext, metadata: dict[str, Any]) -> dict[str, Any]:
    """End a form whose submission was done, or may have been, in a run that could not say so."""
    form = open_form(context)
    outcome = "submitted" if form.standing == "sent" else "in_doubt"
    update = await opened(state, context, "Finalizer", _REASON, "")
    note = say(f"form_{outcome}", state["language"], title=form.definition.title[state["language"]])
    return {**update, "metadata": {**metadata, "outcome": outcome}, "notes": [note]}


def _changed(state: ServedFormState, form: OpenForm) -> list[str]:
    """Return what the person is told first if the form has changed since their last message."""
    if form.dropped is None:
        return []
    fields, language = form.definition.by_id, state["conversation"]["language"]
    names = [fields[name].label[language] for name in form.dropped if name in fields]
    return [say("form_changed", language, fields=", ".join(names)) if names else say("form_changed_none", language)]
