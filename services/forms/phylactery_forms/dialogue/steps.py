"""The eight steps of a message, one for each node of the graph: each returns the fields of the turn that it changes.

They are pure. ``form`` is the conversation's form, ``context`` says when and where; its language is the conversation's.
A model's opinion is handed in by the caller where the rules know nothing; it decides nothing that the words do not bear
out, and rules alone decide where there is none.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from phylactery_understanding.replies.answers import read_answer

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.dialogue import prompts
from phylactery_forms.dialogue.answers import Reading, doubted, read_answer_to, read_correction, settled
from phylactery_forms.dialogue.commands import apply_command, command_of
from phylactery_forms.dialogue.correction import correction_in
from phylactery_forms.dialogue.escalation import completes_with_person, escalation_in
from phylactery_forms.dialogue.off_topic import is_off_topic
from phylactery_forms.dialogue.opinions import Opinion, beside_it, borne_out
from phylactery_forms.dialogue.reading import taken_whole, valid_value
from phylactery_forms.dialogue.state import (
    ConversationState,
    FormTurn,
    all_collected,
    asking_next,
    microseconds,
    put,
)
from phylactery_forms.dialogue.words import answer_to_review, language_of, words_of
from phylactery_forms.values.model import Context, Problem

_AWAY_US: Final = 6 * 3_600_000_000
"""The pause after which a person is told where we are."""
OPEN_DOUBT: Final = "left_over"
"""The reason of a doubt that a model may settle: words that the rules do not know, and no operator."""
_CHANGE: Final = "correction"
"""The reason of a doubt whether an earlier answer is to be changed."""
_NAMES: Final = frozenset({"person_name", "address", "choice", "pattern", "email", "url"})
"""Types whose values are words of no language in particular."""


def check_escalation(turn: FormTurn, form: Form, context: Context, *, opinion: Opinion | None = None) -> dict[str, Any]:
    """Find out the language of the message, and whether a person takes over."""
    conversation = turn["conversation"]
    context = _in_language(conversation, context)
    text = turn["user_message"]
    target = form.by_id.get(_target(conversation) or "")
    language = conversation["language"]
    if target is None or target.type.name not in _NAMES or not taken_whole(target, text, context):
        language = language_of(words_of(text), language)
    paused = microseconds(context) - conversation["updated_us"] > _AWAY_US
    conversation = {
        **conversation,
        "language": language,
        "turns": conversation["turns"] + 1,
        "updated_us": max(microseconds(context), conversation["updated_us"]),
    }
    wants = opinion is not None and opinion.wants_person
    found = escalation_in(form, conversation, text, _in_language(conversation, context), judged=wants)
    return {
        "conversation": conversation,
        "should_escalate": found is not None,
        "escalation_reason": None if found is None else f"{found['policy']}: {found['reason']}",
        "current_field": _target(conversation),
        "metadata": {
            **turn["metadata"],
            "policy": "" if found is None else found["policy"],
            "reason": "" if found is None else found["reason"],
            "resumed": paused,
            "all_collected": all_collected(form, conversation),
        },
    }


def check_correction(turn: FormTurn, form: Form, context: Context, *, opinion: Opinion | None = None) -> dict[str, Any]:
    """Find out whether the message is a command, or corrects an earlier answer."""
    conversation, text = turn["conversation"], turn["user_message"]
    context = _in_language(conversation, context)
    turn_id = str(turn["metadata"].get("turn_id", ""))
    command = command_of(form, conversation, text, context)
    if command is not None:
        return _command(turn, form, context, *apply_command(command, form, conversation, turn_id), name=command)
    answer = read_answer(text)
    doubt, target = conversation.get("doubt"), form.by_id.get(_target(conversation) or "")
    if doubt is not None and doubt["values"] and target is not None and doubt["field"] == target.id:
        value = settled(target, doubt, text, context)
        conversation = {**conversation, "doubt": {**doubt, "values": []}}
        if value is not None:
            return _update(turn, form, conversation, is_correction=False, correction_field=None, same=value)
        if answer == "no" and target.type.name != "yes_no":
            if doubt["reason"] == _CHANGE:  # only a model took it for one: the earlier answer stands
                conversation = asking_next(form, conversation)
            again = _update(turn, form, conversation, is_correction=False, correction_field=None)
            return {**again, "next_action": "ask_again"}
    if conversation["confirming"] is not None and answer != "unclear":
        return _confirmed(turn, form, context, yes=answer == "yes")
    found = correction_in(form, conversation, text, context)
    if found is None and opinion is not None and (named := opinion.corrects) in conversation["values"]:
        said = text if borne_out(form.by_id[named], opinion.values.get(named), text, context).values else ""
        return _update(turn, form, conversation, is_correction=True, correction_field=named, about=said, by_model=True)
    if found is None:
        return _update(turn, form, conversation, is_correction=False, correction_field=None)
    return _update(
        turn,
        form,
        conversation,
        is_correction=True,
        correction_field=found.field,
        about=found.text,
        candidates=list(found.candidates),
    )


def check_off_topic(
    turn: FormTurn, form: Form, context: Context, *, request: bool = False, opinion: Opinion | None = None
) -> dict[str, Any]:
    """Find out whether the message is beside the topic; a digression costs no attempt and is counted."""
    conversation = turn["conversation"]
    collected = all_collected(form, conversation)
    if turn["next_action"] or "same" in turn["metadata"]:
        return {"is_off_topic": False, "metadata": {**turn["metadata"], "all_collected": collected}}
    context = _in_language(conversation, context)
    target, text = _target(conversation), turn["user_message"]
    judged = opinion is not None and opinion.off_topic and not opinion.values
    away = is_off_topic(form, conversation, target, text, context, request=request, judged=judged)
    if collected and answer_to_review(text) != "unclear":
        away = False
    if away:
        conversation = {**conversation, "digressions": conversation["digressions"] + 1}
    return {
        "is_off_topic": away,
        "conversation": conversation,
        "metadata": {
            **turn["metadata"],
            "all_collected": collected,
            "digression": away and request,
            "request": request,
        },
    }


def extract_field(turn: FormTurn, form: Form, context: Context, *, opinion: Opinion | None = None) -> dict[str, Any]:
    """Read the value of the field that is meant, and those of further fields.

    Nothing provided and nothing valid are both None; the problem of the latter goes along, to be explained.
    """
    conversation, metadata = turn["conversation"], turn["metadata"]
    context = _in_language(conversation, context)
    corrects = turn["is_correction"]
    name = turn["correction_field"] if corrects else _target(conversation)
    one = form.by_id.get(name or "")
    text = str(metadata.get("about", "")) if corrects else turn["user_message"]
    value, problem, doubt, counts, more = None, None, None, True, dict[str, str]()
    implied = False
    if one is not None and "same" in metadata:
        value, problem = _checked(one, str(metadata["same"]), context)
    elif one is not None and text.strip():
        reading = (
            read_correction(one, turn["user_message"], text, context)
            if corrects
            else read_answer_to(one, form, conversation, text, context, request=bool(metadata.get("request")))
        )
        if opinion is not None:
            reading = _with_opinion(reading, opinion, one, form, turn, context)
        problem, more = reading.problem, dict(reading.more)
        if reading.certain:
            value, implied = reading.values[0].value, reading.values[0].implied
            asked_back = conversation.get(
                "doubt"
            )  # words that are no yes and no no are another answer: it is said back
            implied = implied or (asked_back is not None and asked_back["field"] == one.id and one.type.name in FREE)
        elif reading.reason:
            doubt, counts = doubted(conversation, one, reading)
    return {
        "current_field": name,
        "extracted_value": value,
        "metadata": {
            **metadata,
            "more": more,
            "implied": implied,
            "doubt": doubt,
            "counts": counts,
            "problem": None if problem is None else {"code": problem.code, "details": dict(problem.details)},
        },
    }


def validate(turn: FormTurn, form: Form, context: Context) -> dict[str, Any]:
    """Validate what was read and put it into the form; the old value of a field stays until a new one is valid."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    context = _in_language(conversation, context)
    turn_id = str(metadata.get("turn_id", ""))
    one, value = form.by_id.get(turn["current_field"] or ""), turn["extracted_value"]
    problem = metadata.get("problem")
    checked = valid_value(one, value, context) if one is not None and value is not None else None
    if isinstance(checked, Problem):
        problem = {"code": checked.code, "details": dict(checked.details)}
    if one is None or checked is None or isinstance(checked, Problem):
        return _refused(turn, form, context, problem)
    corrects = one.id in conversation["values"]
    left = put(conversation, one.id, checked, turn_id)
    for name, further in metadata.get("more", {}).items():
        if not isinstance(valid_value(form.by_id[name], further, context), Problem):
            left = put(left, name, further, turn_id)
    left = {
        **left,
        "attempts": {name: count for name, count in left["attempts"].items() if name != one.id},
        "choosing": [],
        "doubt": None,
        "corrections": left["corrections"] + corrects,
        "left": False,
        "status": "collecting",
    }
    left = asking_next(form, left)
    return {
        "is_valid": True,
        "conversation": left,
        "metadata": {
            **metadata,
            "problem": None,
            "corrected": one.id if corrects else "",
            "all_collected": all_collected(form, left),
        },
    }


def prompt_next(turn: FormTurn, form: Form, context: Context) -> dict[str, Any]:
    """Say what happened to the message, and ask what is to be asked next."""
    del context
    return {"response": prompts.reply(turn, form)}


def escalate(turn: FormTurn, form: Form, context: Context) -> dict[str, Any]:
    """Mark the conversation as handed over, with policy and reason, and say so."""
    conversation = turn["conversation"]
    policy, reason = str(turn["metadata"].get("policy", "")), str(turn["metadata"].get("reason", ""))
    left: ConversationState = {
        **conversation,
        "status": "escalated",
        "escalation": {"policy": policy, "reason": reason},
        "updated_us": max(microseconds(context), conversation["updated_us"]),
    }
    return {"conversation": left, "response": prompts.escalated(form, left)}


def complete(turn: FormTurn, form: Form, context: Context) -> dict[str, Any]:
    """Read everything back, and send it after a yes; a form that submits nothing is complete at once."""
    conversation, text = turn["conversation"], turn["user_message"]
    answer = answer_to_review(text) if conversation["status"] == "review" else "unclear"
    if turn["is_valid"] or turn["next_action"]:
        answer = "unclear"
    handed = completes_with_person(form, conversation)
    if form.submit is None:
        status: Any = "submitted"
    elif answer == "yes":
        status = "submitting"
    else:
        status = "review"
    left: ConversationState = {
        **conversation,
        "status": status,
        "asked": None,
        "escalation": {"policy": "completion", "reason": "form_completed"}
        if handed and status in {"submitted", "submitting"}
        else conversation["escalation"],
        "updated_us": max(microseconds(context), conversation["updated_us"]),
    }
    first = conversation["status"] != "review"
    response = prompts.completed(turn, form, left, answer=answer, first=first)
    return {"conversation": left, "response": response, "declined": answer == "no"}


def is_ambiguous(turn: FormTurn, form: Form, context: Context) -> bool:
    """Return True if the rules know nothing of a message: no command, no correction, no answer, no digression."""
    if turn["next_action"] or turn["is_correction"] or turn["is_off_topic"] or "same" in turn["metadata"]:
        return False
    conversation, text = turn["conversation"], turn["user_message"]
    context = _in_language(conversation, context)
    one = form.by_id.get(_target(conversation) or "")
    if one is None:
        known = answer_to_review(text) != "unclear"
    else:
        read = read_answer_to(one, form, conversation, text, context)
        known = bool(read.values or read.reason or read.problem)
    return not (
        known
        or command_of(form, conversation, text, context)
        or correction_in(form, conversation, text, context)
        or is_off_topic(form, conversation, _target(conversation), text, context)
    )


def _in_language(conversation: ConversationState, context: Context) -> Context:
    return replace(context, language=conversation["language"], region=conversation["region"])


def _target(conversation: ConversationState) -> str | None:
    """Return the field an answer belongs to: the asked one, or the one to be confirmed."""
    return conversation["confirming"] or conversation["asked"]


def _with_opinion(  # noqa: PLR0917 - the step's own arguments
    reading: Reading, opinion: Opinion, one: Field, form: Form, turn: FormTurn, context: Context
) -> Reading:
    """Return what the rules and a model's opinion give: where the rules know something of the field, they decide.

    Words that are left over beside a value are no doubt where a model reads the same value in them. What only a model
    takes for a correction is asked back, whatever its value: its word never overwrites an earlier answer.
    """
    conversation, text = turn["conversation"], turn["user_message"]
    if turn["metadata"].get("by_model"):
        read = borne_out(one, opinion.values.get(one.id), text, context)
        return replace(read, reason=_CHANGE) if read.values else read
    read = borne_out(one, opinion.values.get(one.id), text, context)
    if reading.reason == OPEN_DOUBT and read.certain and read.values[0].value == reading.values[0].value:
        return replace(read, more=reading.more)
    if reading.values or reading.reason or reading.problem:
        return reading
    if turn["is_correction"]:
        return read
    more = beside_it(form, conversation, opinion, text, context, target=one)
    return replace(read, more={**more, **reading.more})


def _checked(one: Field, value: str, context: Context) -> tuple[str | None, Problem | None]:
    checked = valid_value(one, value, context)
    return (None, checked) if isinstance(checked, Problem) else (checked, None)


def _update(
    turn: FormTurn,
    form: Form,
    conversation: ConversationState,
    *,
    is_correction: bool,
    correction_field: str | None,
    **metadata: Any,
) -> dict[str, Any]:
    return {
        "conversation": conversation,
        "is_correction": is_correction,
        "correction_field": correction_field,
        "metadata": {**turn["metadata"], **metadata, "all_collected": all_collected(form, conversation)},
    }


def _command(
    turn: FormTurn,
    form: Form,
    context: Context,
    left: ConversationState,
    about: dict[str, str],
    *,
    name: str,
) -> dict[str, Any]:
    """Return the turn of a command; "same as before" goes on as an answer, with the earlier value."""
    del context
    target = _target(left)
    if name == "same" and target is not None and target in left["previous"]:
        return _update(turn, form, left, is_correction=False, correction_field=None, same=left["previous"][target])
    if about["command"] != "left":
        left = {**left, "left": False}
    found = _update(turn, form, left, is_correction=False, correction_field=None, **about)
    return {**found, "next_action": about["command"]}


def _confirmed(turn: FormTurn, form: Form, context: Context, *, yes: bool) -> dict[str, Any]:
    """Return the turn that answers whether a value is right: after a no it is asked again, and stays until then."""
    del context
    conversation = turn["conversation"]
    name = conversation["confirming"] or ""
    value = conversation["values"][name]
    left: ConversationState = {**conversation, "confirming": None, "asked": None if yes else name}
    if yes:
        left = asking_next(form, {**left, "values": {**left["values"], name: {**value, "confirmed": True}}})
    found = _update(turn, form, left, is_correction=False, correction_field=None, field=name)
    return {**found, "next_action": "confirmed" if yes else "ask_again"}


def _refused(turn: FormTurn, form: Form, context: Context, problem: Any) -> dict[str, Any]:
    """Return the turn of an answer that gave no valid value: values of further fields are kept all the same."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    turn_id = str(metadata.get("turn_id", ""))
    name = turn["current_field"]
    more = metadata.get("more", {})
    left = conversation
    for other, further in more.items():
        if not isinstance(valid_value(form.by_id[other], further, context), Problem):
            left = put(left, other, further, turn_id)
    if turn["is_correction"] and name is None:
        left = {**left, "choosing": list(metadata.get("candidates", []))}
    elif turn["is_correction"] and name is not None:
        left = {**left, "asked": name, "confirming": None, "choosing": [], "status": "collecting"}
    elif name is not None and not more and metadata.get("counts", True):
        left = {**left, "attempts": {**left["attempts"], name: left["attempts"].get(name, 0) + 1}}
    left = {**left, "doubt": metadata.get("doubt")}
    return {
        "is_valid": False,
        "conversation": left,
        "metadata": {**metadata, "problem": problem, "all_collected": all_collected(form, left)},
    }
