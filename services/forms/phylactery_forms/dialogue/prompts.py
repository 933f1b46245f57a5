"""The replies of the dialogue: what happened to the message, then what is asked next."""

from __future__ import annotations

from phylactery_understanding.replies.answers import read_answer
from phylactery_understanding.replies.talk import read_talk

from phylactery_forms.definitions.model import FREE, Field, Form
from phylactery_forms.definitions.templates import placeholders
from phylactery_forms.dialogue.messages import (
    ask_text,
    choice_list,
    choices_of,
    example_text,
    help_text,
    own_text,
    problem_text,
    say,
    summary,
    value_text,
    with_values,
)
from phylactery_forms.dialogue.state import ConversationState, FormTurn
from phylactery_forms.dialogue.words import words_of
from phylactery_forms.values.message import fold
from phylactery_forms.values.model import Language, Problem


def opening(form: Form, conversation: ConversationState) -> str:
    """Return the first words of a form: its own, and the first question."""
    start = own_text("start", form, conversation)
    asked = question(form, conversation)
    return f"{start} {asked}".strip() if start else asked


def question(form: Form, conversation: ConversationState) -> str:
    """Return what is asked now: a field, a confirmation, or whether to send everything."""
    language = conversation["language"]
    confirming = form.by_id.get(conversation["confirming"] or "")
    if confirming is not None:
        value = value_text(confirming, conversation["values"][confirming.id]["value"], language)
        return say("confirm_value", language, label=_capital(confirming.label[language]), value=value)
    if conversation["choosing"]:
        return say("which", language, labels=_labels(form, conversation["choosing"], conversation, numbered=True))
    asked = form.by_id.get(conversation["asked"] or "")
    if asked is not None:
        return ask_text(asked, language)
    return say("review_waiting", language) if conversation["status"] == "review" else ""


def choices(form: Form, conversation: ConversationState) -> list[str]:
    """Return the labels of the options that the asked field takes, empty if anything else is asked.

    Empty as well if a label is a yes or a no: pressed, it could answer whatever else waits for one.
    """
    asked = form.by_id.get(conversation["asked"] or "")
    doubt = conversation.get("doubt")
    elsewhere = conversation["confirming"] or conversation["choosing"] or (doubt is not None and doubt["values"])
    if asked is None or elsewhere or conversation.get("left") or conversation["status"] != "collecting":
        return []
    labels = [one.label(conversation["language"]) for one in choices_of(asked)]
    return [] if any(read_answer(label) != "unclear" for label in labels) else labels


def reply(turn: FormTurn, form: Form) -> str:
    """Return the reply to a message that did not complete the form."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    language = conversation["language"]
    asking = question(form, conversation)
    if conversation["status"] == "cancelled":
        return own_text("cancelled", form, conversation) or say("cancelled", language, title=form.title[language])
    if turn["next_action"] == "left":
        return say("left", language, title=form.title[language])
    if metadata.get("resumed") and (turn["is_off_topic"] or turn["next_action"] in {"resume", "told"}):
        return _welcome(form, conversation, asking)
    if turn["next_action"]:
        return _after_command(turn, form, asking)
    if turn["is_off_topic"]:
        if conversation["digressions"] >= form.digressions:
            return say("off_topic_bounded", language, title=form.title[language], ask=asking)
        talk = read_talk(turn["user_message"])
        return say("greeting" if talk is not None and talk.kind == "greeting" else "off_topic", language, ask=asking)
    if conversation["choosing"]:
        return asking
    if metadata.get("doubt"):
        return _doubtful(turn, form, asking)
    if not turn["is_valid"]:
        return _refusal(turn, form, asking)
    corrected = form.by_id.get(str(metadata.get("corrected", "")))
    if corrected is not None and corrected.id in conversation["values"] and not conversation["confirming"]:
        return _corrected(corrected, conversation, asking)
    return _said_back(turn, form, asking)


def completed(turn: FormTurn, form: Form, conversation: ConversationState, *, answer: str, first: bool) -> str:
    """Return the review, what follows from its answer, or the thanks of a form that submits nothing."""
    language, title = conversation["language"], form.title[conversation["language"]]
    if conversation["status"] == "submitted":
        done = own_text("done", form, conversation)
        return done or say("review_without_submit", language, title=title, summary=summary(form, conversation))
    if conversation["status"] == "submitting":
        return say("sending", language)
    if answer == "no":
        return what_to_change(language)
    if not first and not turn["next_action"] and not turn["is_valid"] and read_talk(turn["user_message"]) is not None:
        return say("review_waiting", language)  # after anything else they see again what a yes sends
    corrected = form.by_id.get(str(turn["metadata"].get("corrected", "")))
    told = ""
    if turn["is_valid"] and corrected is not None and corrected.id in conversation["values"]:
        told = _corrected(corrected, conversation, "").strip()  # also what was said in passing may have been taken so
    elif not first and answer == "unclear" and not turn["is_valid"] and not turn["next_action"]:
        told = say("review_unread", language)
    return "\n\n".join(filter(None, (told, review(form, conversation))))


def what_to_change(language: Language) -> str:
    """Return what is asked after a no at the review."""
    return say("what_to_change", language)


def review(form: Form, conversation: ConversationState) -> str:
    """Return everything that is sent, and the question whether to send it.

    What a text of the form's author leaves out of what is stored for the team is said besides: a yes is for all of it.
    """
    language, submit = conversation["language"], form.submit
    own = submit.confirm if submit is not None and submit.confirm is not None else form.prompts.get("review")
    if own is None:
        return say("review", language, title=form.title[language], summary=summary(form, conversation))
    text = with_values(own[language], form, conversation)
    left = set(() if submit is None else submit.fields) - set(placeholders(own[language]))
    told = summary(form, conversation, left)
    return f"{told}\n\n{text}" if told else text


def finished(form: Form, conversation: ConversationState) -> str:
    """Return the thanks after a submission."""
    own = own_text("done", form, conversation)
    return own or say("done", conversation["language"], title=form.title[conversation["language"]])


def escalated(form: Form, conversation: ConversationState) -> str:
    """Return what is said when a person takes over."""
    return own_text("escalated", form, conversation) or say("escalated", conversation["language"])


def _welcome(form: Form, conversation: ConversationState, asking: str) -> str:
    language, told = conversation["language"], summary(form, conversation)
    key = "welcome_back" if told else "welcome_back_empty"
    return say(key, language, title=form.title[language], summary=told, ask=asking)


def _after_command(turn: FormTurn, form: Form, asking: str) -> str:
    conversation, command = turn["conversation"], turn["next_action"]
    language = conversation["language"]
    asked = form.by_id.get(conversation["asked"] or "")
    if command == "undone":
        fields = str(turn["metadata"].get("fields", "")).split()
        return say("undone", language, labels=_labels(form, fields, conversation, numbered=False), ask=asking)
    if command == "told":
        told = summary(form, conversation)
        return say("told" if told else "told_nothing", language, summary=told, ask=asking)
    if command == "explain" and asked is not None:
        example = example_text(asked, language, conversation["region"])
        return say("exampled", language, problem=help_text(asked, language), example=example, ask=asking)
    if command == "hold":
        return say("hold", language, ask=asking)
    if command == "same":
        return say("no_same", language, ask=asking)
    if command in {"nothing_to_undo", "skipped", "not_skippable"}:
        return say(command, language, ask=asking)
    return asking


def _refusal(turn: FormTurn, form: Form, asking: str) -> str:
    """Return why an answer was not used: the more often, the more help."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    language = conversation["language"]
    raw = metadata.get("problem")
    problem = None if raw is None else Problem(raw["code"], raw["details"])
    one = form.by_id.get(turn["current_field"] or "")
    if one is None or metadata.get("more"):
        given = summary(form, conversation, metadata.get("more", ()))
        return say("noted", language, given=given, ask=asking) if given else asking
    told = problem_text(one, problem, language)
    if turn["is_correction"]:
        if raw is None and not str(metadata.get("about", "")).strip():
            return say("correct_what", language, label=one.label[language])
        return say("correction_failed", language, problem=told, label=one.label[language])
    tries = conversation["attempts"].get(one.id, 1)
    if not words_of(turn["user_message"]).tokens:
        told = problem_text(one, None, language)
    return _rung(one, tries, told, asking, conversation)


def _doubtful(turn: FormTurn, form: Form, asking: str) -> str:
    """Return the question by which a doubtful answer is asked back: with what was heard."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    language, doubt = conversation["language"], metadata["doubt"]
    one = form.by_id[doubt["field"]]
    values = [value_text(one, value, language) for value in doubt["values"]]
    raw = metadata.get("problem")
    if values and one.type.name == "yes_no":  # a yes to "yes?" would say no more than the first
        values, raw = [], {"code": "unclear_answer", "details": {}}
    if doubt["reason"] == "denied":
        return say("doubt_denied", language, ask=asking)
    if not values:
        told = problem_text(one, None if raw is None else Problem(raw["code"], raw["details"]), language)
        return say("explained", language, problem=told, help=help_text(one, language), ask=asking)
    if one.sensitive:
        return say("doubt_hidden", language, ask=asking)
    if len(values) > 1:
        return say("doubt_several", language, values=say("or", language).join(values))
    reason = doubt["reason"]
    if reason not in {"bound", "others", "correction"} and one.type.name in FREE:
        reason = "request"  # what somebody wrote is quoted
    own = reason in {"bound", "others", "request", "correction"}
    label = _capital(one.label[language]) if reason == "correction" else one.label[language]
    return say(f"doubt_{reason}" if own else "doubt", language, value=values[0], label=label)


def _said_back(turn: FormTurn, form: Form, asking: str) -> str:
    """Return the next question after what was read, where that is not what was written word by word."""
    conversation, metadata = turn["conversation"], turn["metadata"]
    language = conversation["language"]
    one = form.by_id.get(turn["current_field"] or "")
    if one is None or one.id not in conversation["values"] or conversation["confirming"] == one.id:
        return asking
    if metadata.get("more") or metadata.get("implied"):
        given = [one.id, *(name for name in metadata["more"] if name != conversation["confirming"])]
        return say("noted", language, given=summary(form, conversation, given), ask=asking)
    value = value_text(one, conversation["values"][one.id]["value"], language)
    same = one.sensitive or one.type.name in {*FREE, "yes_no", "phone"} or fold(value) in fold(turn["user_message"])
    return asking if same else say("said_back", language, value=value, ask=asking)


def _rung(one: Field, tries: int, told: str, asking: str, conversation: ConversationState) -> str:
    """Return the reply of one rung of the ladder: explain, example, then choices, leaving it out, or a person."""
    language = conversation["language"]
    if tries <= 1 and one.attempts > 1:
        return say("explained", language, problem=told, help=help_text(one, language), ask=asking)
    if tries < one.attempts:
        example = example_text(one, language, conversation["region"])
        return say("exampled", language, problem=told, example=example, ask=asking)
    if choices_of(one) and tries == one.attempts:
        return say("last_choices", language, problem=told, choices=choice_list(one, language))
    return say("last_optional" if one.optional else "last_person", language, problem=told, ask=asking)


def _corrected(one: Field, conversation: ConversationState, asking: str) -> str:
    language = conversation["language"]
    value = value_text(one, conversation["values"][one.id]["value"], language)
    return say("corrected", language, label=one.label[language], value=value, ask=asking)


def _labels(form: Form, fields: list[str], conversation: ConversationState, *, numbered: bool) -> str:
    language = conversation["language"]
    labels = [form.by_id[name].label[language] for name in fields if name in form.by_id]
    if not numbered:
        return ", ".join(labels)
    return ", ".join(say("number_choice", language, number=str(n), label=one) for n, one in enumerate(labels, 1))


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
