"""Seed 004's nodes as they are served: each calls its step of the dialogue; the turn has one reply, at its end."""

from __future__ import annotations

import json
from typing import Any, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue import steps
from phylactery_forms.dialogue.prompts import question, review
from phylactery_forms.dialogue.state import ConversationState, FormTurn, given_values
from phylactery_forms.values.model import Context, Language

from phylactery_agent.graph.form import nodes
from phylactery_agent.graph.form.state import GraphState
from phylactery_agent.i18n.messages import message
from phylactery_agent.ports import OpenForm, TurnContext
from phylactery_agent.ports.handoff import EscalationState
from phylactery_agent.rules.intents import TASK
from phylactery_agent.rules.planner import read_aside, read_request


class ServedFormState(GraphState):
    """The state of the form graph, and the request for a person."""

    escalation: EscalationState | None
    """The request for a person that ends the turn."""


def open_form(context: TurnContext) -> OpenForm:
    """Return the form of the turn. Raise RuntimeError if there is none, which is an internal error (bug)."""
    if context.form is None:
        raise RuntimeError("a step of a form was reached without a form")
    return context.form


def _given(state: ServedFormState, runtime: Runtime[TurnContext]) -> tuple[FormTurn, Form, Context]:
    form = open_form(runtime.context)
    return cast("FormTurn", state), form.definition, form.context(state["conversation"]["language"])


async def check_escalation(
    state: ServedFormState, runtime: Runtime[TurnContext]
) -> Command[Literal["escalate", "check_correction"]]:
    """Find out the language of the message, which the reply then has, and whether a person takes over.

    Where nobody works the queue, a person who asks for one is told so; the other policies do nothing.
    """
    command = await nodes.check_escalation(state, runtime)
    update = {**cast("dict[str, Any]", command.update)}
    update["language"] = update["conversation"]["language"]
    if not open_form(runtime.context).on_duty and update["metadata"]["policy"] not in {"", "keyword"}:
        return Command(goto="check_correction", update={**update, "should_escalate": False, "escalation_reason": None})
    return Command(goto=command.goto, update=update)


async def check_correction(
    state: ServedFormState, runtime: Runtime[TurnContext]
) -> Command[Literal["extract_field", "check_off_topic", "prompt_next"]]:
    """Find out whether the message corrects an earlier answer, or is a command; a cancelled form is not completed."""
    command = await nodes.check_correction(state, runtime)
    update = cast("dict[str, Any]", command.update)
    if update["conversation"]["status"] == "cancelled":
        return Command(goto="prompt_next", update=update)
    return Command(goto=cast("Any", command.goto), update=update)


async def check_off_topic(
    state: ServedFormState, runtime: Runtime[TurnContext]
) -> Command[Literal["prompt_next", "complete", "extract_field", "Planner"]]:
    """Find out whether the message is no answer. What the agent can do is then done, and the form goes on after it."""
    words, tools = state["user_message"], runtime.context.tools
    read = await read_aside((state["tenant"], state["user_id"]), words, lambda: read_request(words, tools))
    intent = TASK if read.clauses else ""  # words that are merely unknown are no request, whatever the intent says
    command = await nodes.check_off_topic(cast("ServedFormState", {**state, "intent": intent}), runtime)
    update = cast("dict[str, Any]", command.update)
    if read.clauses and update["is_off_topic"]:
        return Command(goto="Planner", update=update)
    return Command(goto=cast("Any", command.goto), update=update)


async def prompt_next(state: ServedFormState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    """Ask what is to be asked next."""
    return Command(goto="Finalizer", update=_said(state, steps.prompt_next(*_given(state, runtime))))


async def escalate(state: ServedFormState, runtime: Runtime[TurnContext]) -> Command[Literal["Finalizer"]]:
    """Hand over to a person; where nobody works the queue, say so and go on with the form."""
    form = open_form(runtime.context)
    if not form.on_duty:
        asked = question(form.definition, state["conversation"])
        notes = [message("handoff_nobody_in_form", state["language"]), *([asked] if asked else [])]
        return Command(goto="Finalizer", update={"notes": [*state["notes"], *notes]})
    update = steps.escalate(*_given(state, runtime))
    wanted = handed_over(form.definition, update["conversation"])
    return Command(goto="Finalizer", update={**_said(state, update), "escalation": wanted})


async def complete(state: ServedFormState, runtime: Runtime[TurnContext]) -> Command[Literal["submit", "Finalizer"]]:
    """Read everything back, and propose its submission where the form has one.

    The person's yes belongs to the approval of that call alone: a yes that reaches the form shows it once more. After a
    no nothing is asked until they say what to change, or want it after all.
    """
    form, update = open_form(runtime.context).definition, steps.complete(*_given(state, runtime))
    if form.submit is None:
        thanks = await thanks_by_model(form, runtime.context, update["conversation"]["language"])
        update = {**update, "response": " ".join(filter(None, (update["response"], thanks)))}
        return Command(goto="Finalizer", update=_said(state, update))
    if update["declined"]:
        metadata = {**state["metadata"], "declined": True}
        return Command(goto="Finalizer", update={**_said(state, update), "metadata": metadata})
    left: ConversationState = update["conversation"]
    if left["status"] == "submitting":
        left = {**left, "status": "review"}
        update = {**update, "conversation": left, "response": review(form, left)}
    return Command(goto="submit", update=_said(state, update))


async def thanks_by_model(form: Form, context: TurnContext, language: Language) -> str:
    """Return a model's own words of thanks for a completed form, empty without a model or where none are wanted."""
    reader = None if context.forms is None else context.forms.reader
    return "" if reader is None else await reader.thanks(form, language)


def handed_over(form: Form, conversation: ConversationState) -> EscalationState:
    """Return the request for a person, who is shown what was said so far, without sensitive values."""
    found = conversation["escalation"] or {"policy": "keyword", "reason": ""}
    told = {one: value for one, value in given_values(form, conversation).items() if not form.by_id[one].sensitive}
    return EscalationState(
        policy=found["policy"], reason=found["reason"], form_id=form.id, form_state=json.dumps(told, ensure_ascii=False)
    )


def _said(state: ServedFormState, update: dict[str, Any]) -> dict[str, Any]:
    response = update["response"]
    return {**update, "notes": [*state["notes"], *([response] if response else [])]}
