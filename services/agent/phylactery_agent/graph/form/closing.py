"""End of a turn said in a form: how its submission stands, and after a digression the form's question again."""

from __future__ import annotations

from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Command
from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.escalation import completes_with_person
from phylactery_forms.dialogue.messages import with_values
from phylactery_forms.dialogue.prompts import choices, escalated, finished, question, what_to_change
from phylactery_forms.dialogue.state import ConversationState

from phylactery_agent.graph.core.events import EFFECT_IN_DOUBT, SELF_CLASS
from phylactery_agent.graph.form.steps import ServedFormState, handed_over, open_form, thanks_by_model
from phylactery_agent.graph.secured.nodes.finalizer import finalizer
from phylactery_agent.i18n.texts import named, say
from phylactery_agent.ports import TurnContext
from phylactery_agent.rules.intents import parse_reply

_MOST_CHOICES: Final = 10
"""What the list of a channel holds; more are read and written."""


async def close(state: ServedFormState, runtime: Runtime[TurnContext]) -> Command[Literal["__end__"]]:
    """Write the turn's one reply."""
    context = runtime.context
    if context.form is None:
        return await finalizer(state, runtime)
    changes = await _submission(state, context) if state["metadata"].get("submission") else _digression(state, context)
    command = await finalizer(cast("ServedFormState", {**state, **changes}), runtime)
    update = {**changes, **cast("dict[str, Any]", command.update)}
    if update["run_status"] == "done" and update["reply"]["text"]:
        answers = choices(context.form.definition, update.get("conversation", state["conversation"]))
        update["reply"] = {**update["reply"], "choices": answers if len(answers) <= _MOST_CHOICES else []}
    return Command(goto="__end__", update=update)


def _outcome(state: ServedFormState) -> Literal["submitting", "submitted", "in_doubt", "review"]:
    """Return what became of the call that this run proposed."""
    if state["awaiting_approval"]:
        return "submitting"
    step = state["steps"].get(state["metadata"]["submission"]["step_id"])
    if step is not None and step["status"] == "done":
        return "submitted"
    return "in_doubt" if step is not None and step["last_error"] == EFFECT_IN_DOUBT else "review"


async def _submission(state: ServedFormState, context: TurnContext) -> dict[str, Any]:
    outcome, form = _outcome(state), open_form(context).definition
    language, title = state["language"], form.title[state["language"]]
    status = "review" if outcome in {"submitting", "review"} else "submitted"
    conversation = cast("ConversationState", {**state["conversation"], "status": status})
    changes: dict[str, Any] = {
        "conversation": conversation,
        "metadata": {**state["metadata"], "outcome": outcome},
    }
    if outcome == "submitting":
        return {**changes, "notes": _asked(state, form, context)}
    if outcome == "submitted":
        own = await thanks_by_model(form, context, language)
        done = _completed(form, conversation, own, on_duty=open_form(context).on_duty)
        return {**changes, **done, "quoted": {}}
    if outcome == "in_doubt":
        return {**changes, "notes": [say("form_in_doubt", language, title=title)], "quoted": {}}
    reply = parse_reply(state["incoming"]["text"])
    if reply is not None and reply.verb == "reject":
        return {**changes, **_done(state), "notes": [what_to_change(language)]}
    return {**changes, **_done(state), "notes": [*state["notes"], say("form_not_sent", language, title=title)]}


def _asked(state: ServedFormState, form: Form, context: TurnContext) -> list[str]:
    """Return the notes with the question of the approval as the form's own: what is sent, and where to.

    No sensitive value is in it.
    """
    approval, language = state["approval_state"], state["language"]
    if approval is None or form.submit is None:
        return state["notes"]
    own = approval["approval_class"] == SELF_CLASS
    title = named([approval["tool"]], language, context.tools)
    general = say("approval_required" if own else "approval_required_other", language, tools=title)
    spec = context.tools.get(form.submit.tool)
    controls = () if spec is None else spec.contract.controls
    given = (form.submit.args.get(pointer.removeprefix("/")) for pointer in controls)
    where = ", ".join(with_values(one, form, state["conversation"]) for one in given if isinstance(one, str))
    to, bare = ("form_asked_to", "form_asked") if own else ("form_asked_other_to", "form_asked_other")
    key = to if where else bare
    mine = say(key, language, title=form.title[language], where=where)
    return [mine if note == general else note for note in state["notes"]]


def _completed(form: Form, conversation: ConversationState, own: str, *, on_duty: bool) -> dict[str, Any]:
    """Return the update that thanks for a submitted form, and hands it over if the form says that a person goes on.

    A model's own words of thanks stand behind the sentence that says what was done.
    """
    thanks = " ".join(filter(None, (finished(form, conversation), own)))
    if not on_duty or not completes_with_person(form, conversation):
        return {"notes": [thanks]}
    left = cast(
        "ConversationState", {**conversation, "escalation": {"policy": "completion", "reason": "form_completed"}}
    )
    return {
        "notes": [thanks, escalated(form, left)],
        "conversation": left,
        "escalation": handed_over(form, left),
    }


def _digression(state: ServedFormState, context: TurnContext) -> dict[str, Any]:
    """Return the update that ends a digression with the form's question; a failed one asks nothing of its own."""
    if not state["metadata"].get("digression"):
        return {}
    left = state["conversation"].get("left", False)
    asked = "" if left else question(open_form(context).definition, state["conversation"])
    return {**_done(state), "notes": [*state["notes"], *([asked] if asked else [])]}


def _done(state: ServedFormState) -> dict[str, Any]:
    """Return the update that ends a run which would wait for words of the person: those are for the form."""
    if state["run_status"] != "suspended" or state["awaiting_approval"]:
        return {}
    return {"run_status": "done", "finish_reason": "ANSWERED", "awaiting_user_input": False}
