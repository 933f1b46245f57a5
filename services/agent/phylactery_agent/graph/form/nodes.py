"""The eight nodes of the form graph. Each runs one pure step of the library; a model is asked where rules are open.

check_escalation, check_correction and check_off_topic decide, extract_field and validate fill the form, and
prompt_next, escalate and complete write the reply. Where the turn ends, ``reply`` and the run's status are set, as
other graphs do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue import steps
from phylactery_forms.dialogue.opinions import Opinion
from phylactery_forms.dialogue.state import FormTurn

from phylactery_agent.graph.core.events import reply_id, with_message
from phylactery_agent.graph.core.state import ChatMessage, Reply
from phylactery_agent.graph.form.edges import (
    route_after_correction_check,
    route_after_escalation_check,
    route_after_off_topic_check,
    route_after_validate,
)
from phylactery_agent.graph.form.state import GraphState
from phylactery_agent.ports import TurnContext
from phylactery_agent.ports.forms import FormContext


def parts_of(state: GraphState, runtime: Runtime[TurnContext]) -> tuple[Form, FormContext]:
    """Return the form of the conversation and what the turn gives the nodes.

    Raises:
        RuntimeError: the turn has no forms, or not this one: an internal error (bug).
    """
    forms = runtime.context.forms
    name = state["conversation"]["form"]
    if forms is None or name not in forms.forms:
        raise RuntimeError(f"the turn's context has no form '{name}'")
    return forms.forms[name], forms


async def check_escalation(
    state: GraphState, runtime: Runtime[TurnContext]
) -> Command[Literal["escalate", "check_correction"]]:
    """Find out the language of the message, and whether a person takes over."""
    form, given = parts_of(state, runtime)
    update = steps.check_escalation(state, form, given.context)
    asks = not update["should_escalate"] and form.escalation.llm_intent
    if asks and (opinion := await _opinion(state, update, given, form)):
        update = steps.check_escalation(state, form, given.context, opinion=opinion)
    return Command(goto=route_after_escalation_check(_after(state, update)), update=update)


async def check_correction(
    state: GraphState, runtime: Runtime[TurnContext]
) -> Command[Literal["extract_field", "check_off_topic"]]:
    """Find out whether the message is a command, or corrects an earlier answer."""
    form, given = parts_of(state, runtime)
    update = steps.check_correction(state, form, given.context)
    if state["conversation"]["values"] and (opinion := await _opinion(state, update, given, form)):
        update = steps.check_correction(state, form, given.context, opinion=opinion)
    return Command(goto=route_after_correction_check(_after(state, update)), update=update)


async def check_off_topic(
    state: GraphState, runtime: Runtime[TurnContext]
) -> Command[Literal["complete", "prompt_next", "extract_field"]]:
    """Find out whether the message is beside the topic; intent ``task`` says that the agent can do what it asks."""
    form, given = parts_of(state, runtime)
    request = state["intent"] == "task"
    update = steps.check_off_topic(state, form, given.context, request=request)
    if opinion := await _opinion(state, update, given, form):
        update = steps.check_off_topic(state, form, given.context, request=request, opinion=opinion)
    return Command(goto=route_after_off_topic_check(_after(state, update)), update=update)


async def extract_field(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Literal["validate"]]:
    """Read the value that is meant; NOT_PROVIDED and INVALID become None."""
    form, given = parts_of(state, runtime)
    update = steps.extract_field(state, form, given.context)
    told, doubt = update["metadata"], update["metadata"]["doubt"]  # a refusal by rules stands, and so does their doubt
    unread = update["extracted_value"] is None and told["problem"] is None
    settles = doubt is None or doubt["reason"] == steps.OPEN_DOUBT
    if given.reader and update["current_field"] and (told.get("by_model") or (unread and settles)):
        opinion = await given.reader.read(form, state["conversation"], state["user_message"], given.context)
        update = steps.extract_field(state, form, given.context, opinion=opinion)
    return Command(goto="validate", update=update)


async def validate(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Literal["complete", "prompt_next"]]:
    """Validate what was read and put it into the form."""
    form, given = parts_of(state, runtime)
    update = steps.validate(state, form, given.context)
    return Command(goto=route_after_validate(_after(state, update)), update=update)


async def prompt_next(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Say what happened to the message, and ask what is to be asked next."""
    return _ended(state, runtime, steps.prompt_next, "FORM_ASKED")


async def escalate(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Mark the conversation as handed over, and say so."""
    return _ended(state, runtime, steps.escalate, "FORM_ESCALATED")


async def complete(state: GraphState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Read everything back, or send it after a yes."""
    return _ended(state, runtime, steps.complete, "FORM_COMPLETED")


def _ended(
    state: GraphState, runtime: Runtime[TurnContext], step: Callable[..., dict[str, Any]], reason: str
) -> Command[Literal["__end__"]]:
    """Return the end of the turn: the step's reply under an id derived from run and turn alone, sent once."""
    form, given = parts_of(state, runtime)
    update = step(state, form, given.context)
    reply = Reply(id=reply_id(state["run_id"], state["turn_id"]), text=update["response"])
    said = ChatMessage(id=reply["id"], role="assistant", content=reply["text"])
    return Command(
        goto="__end__",
        update={
            **update,
            "reply": reply,
            "messages": with_message(state["messages"], said),
            "run_status": "done",
            "finish_reason": reason,
        },
    )


def _after(state: GraphState, update: dict[str, Any]) -> FormTurn:
    return cast("FormTurn", {**state, **update})


async def _opinion(state: GraphState, update: dict[str, Any], given: FormContext, form: Form) -> Opinion | None:
    """Return a model's opinion of a message of which the rules know nothing; None where they do, or there is none."""
    if given.reader is None or not steps.is_ambiguous(_after(state, update), form, given.context):
        return None
    return await given.reader.read(form, state["conversation"], state["user_message"], given.context)
