"""State of a conversation about a form, and of one message of it, both plain JSON."""

from __future__ import annotations

from typing import Any, Final, Literal, NotRequired, TypedDict

from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.values.model import Context, Language

Status = Literal["collecting", "review", "submitting", "submitted", "cancelled", "escalated"]
OPEN: Final = frozenset({"collecting", "review"})
"""Statuses in which a message belongs to the form."""
MAX_CHARACTERS: Final = 4_000
"""The part of a message that is read for anything but a text."""
MAX_HISTORY: Final = 100


class FilledValue(TypedDict):
    """The canonical value of a field, the turn it is from, and whether the person confirmed it by itself."""

    value: str
    turn_id: str
    confirmed: bool


class Change(TypedDict):
    """A change of one field, for undo; before is None if it had no value."""

    field: str
    before: FilledValue | None
    skipped: bool
    """Whether the field was skipped before."""
    turn_id: str


class Escalated(TypedDict):
    """Why a conversation goes to a person."""

    policy: str
    reason: str


class Doubt(TypedDict):
    """An answer that was asked back: its values, why, and how often in a row; none where only another answer helps."""

    field: str
    values: list[str]
    reason: str
    times: int


class ConversationState(TypedDict):
    """A conversation about one form, complete: it lies in the checkpoint and in the session's row."""

    form: str
    version: str
    """The hash of the form's file."""
    language: Language
    region: str
    zone: str
    values: dict[str, FilledValue]
    asked: str | None
    """The field whose value is asked for."""
    confirming: str | None
    """The field whose value the person is asked to confirm."""
    choosing: list[str]
    """The fields of which the person is asked which one they mean to change."""
    skipped: list[str]
    attempts: dict[str, int]
    history: list[Change]
    previous: dict[str, str]
    """The values of the person's last submission of this form: same as before."""
    digressions: int
    turns: int
    corrections: int
    status: Status
    escalation: Escalated | None
    left: NotRequired[bool]
    """Whether the person left it for now: what they do meanwhile is not followed by the form's question."""
    doubt: NotRequired[Doubt | None]
    """The answer to the asked field that was asked back, until the next one."""
    started_us: int
    updated_us: int


class FormTurn(TypedDict):
    """One message of a conversation about a form, under the names of the form graph."""

    conversation: ConversationState
    user_message: str
    next_action: str
    """What the message does apart from answering: a command, or an empty text."""
    should_escalate: bool
    escalation_reason: str | None
    is_correction: bool
    correction_field: str | None
    is_off_topic: bool
    extracted_value: str | None
    is_valid: bool
    current_field: str | None
    response: str
    metadata: dict[str, Any]


def new_conversation(
    form: Form,
    context: Context,
    *,
    previous: dict[str, str] | None = None,
) -> ConversationState:
    """Return the state of a form that just begins; its first field is asked."""
    now_us = microseconds(context)
    conversation = ConversationState(
        form=form.id,
        version=form.hash,
        language=context.language,
        region=context.region,
        zone=str(context.now.tzinfo),
        values={},
        asked=None,
        confirming=None,
        choosing=[],
        skipped=[],
        attempts={},
        history=[],
        previous=dict(previous or {}),
        digressions=0,
        turns=0,
        corrections=0,
        status="collecting",
        escalation=None,
        started_us=now_us,
        updated_us=now_us,
    )
    return {**conversation, "asked": first_open(form, conversation)}


def new_turn(conversation: ConversationState, text: str, turn_id: str) -> FormTurn:
    """Return the fields of a message that was not looked at yet."""
    return FormTurn(
        conversation=conversation,
        user_message=text,
        next_action="",
        should_escalate=False,
        escalation_reason=None,
        is_correction=False,
        correction_field=None,
        is_off_topic=False,
        extracted_value=None,
        is_valid=False,
        current_field=conversation["asked"],
        response="",
        metadata={"turn_id": turn_id},
    )


def microseconds(context: Context) -> int:
    """Return the time of a context, in microseconds since the epoch."""
    return int(context.now.timestamp() * 1_000_000)


def holds(rule: Any, conversation: ConversationState) -> bool:
    """Return True if every field of a condition has one of its values."""
    values = conversation["values"]
    return all(name in values and values[name]["value"] in wanted for name, wanted in rule.items())


def applies(one: Field, conversation: ConversationState) -> bool:
    """Return True if a field is part of this conversation, by the fields it depends on."""
    return holds(one.depends_on, conversation)


def first_open(form: Form, conversation: ConversationState) -> str | None:
    """Return the first field that is still to be asked, or None."""
    values, skipped = conversation["values"], conversation["skipped"]
    return next(
        (f.id for f in form.fields if f.id not in values and f.id not in skipped and applies(f, conversation)), None
    )


def asking_next(form: Form, conversation: ConversationState) -> ConversationState:
    """Return the state that asks on: first whether a value is right whose field is read back, however it was given."""
    values = conversation["values"]
    waits = (f.id for f in form.fields if f.confirm and f.id in values and applies(f, conversation))
    confirming = next((name for name in waits if not values[name]["confirmed"]), None)
    asked = None if confirming is not None else first_open(form, conversation)
    return {**conversation, "confirming": confirming, "asked": asked}


def all_collected(form: Form, conversation: ConversationState) -> bool:
    """Return True if nothing is to be asked any more: no field, no confirmation, and no correction half made."""
    return (
        conversation["status"] not in {"cancelled", "escalated"}
        and conversation["confirming"] is None
        and not conversation["choosing"]
        and (conversation["asked"] is None or conversation["asked"] not in conversation["values"])
        and first_open(form, conversation) is None
    )


def given_values(form: Form, conversation: ConversationState) -> dict[str, str]:
    """Return the canonical values of the fields that apply: what is submitted."""
    values = conversation["values"]
    return {f.id: values[f.id]["value"] for f in form.fields if f.id in values and applies(f, conversation)}


def last_changed(conversation: ConversationState) -> str | None:
    """Return the field with a value that was given or changed last, or None."""
    return next(
        (one["field"] for one in reversed(conversation["history"]) if one["field"] in conversation["values"]), None
    )


def _put(conversation: ConversationState, field: str, value: FilledValue | None, turn_id: str) -> ConversationState:
    before = conversation["values"].get(field)
    values = {name: one for name, one in conversation["values"].items() if name != field}
    if value is not None:
        values[field] = value
    change = Change(field=field, before=before, skipped=field in conversation["skipped"], turn_id=turn_id)
    return {
        **conversation,
        "values": values,
        "skipped": [name for name in conversation["skipped"] if name != field],
        "history": [*conversation["history"], change][-MAX_HISTORY:],
    }


def put(conversation: ConversationState, field: str, value: str, turn_id: str) -> ConversationState:
    """Return the state with a field's value; the one it had is kept for undo."""
    return _put(conversation, field, FilledValue(value=value, turn_id=turn_id, confirmed=False), turn_id)


def skip(conversation: ConversationState, field: str, turn_id: str) -> ConversationState:
    """Return the state without a value of a field, which is not asked again."""
    left = _put(conversation, field, None, turn_id)
    return {**left, "skipped": [*left["skipped"], field]}


def undone(conversation: ConversationState) -> tuple[ConversationState, list[str]]:
    """Return the state before the last turn that changed a value, and the fields it had changed; none if no turn."""
    history = list(conversation["history"])
    if not history:
        return conversation, []
    turn_id, fields = history[-1]["turn_id"], []
    values, skipped = dict(conversation["values"]), list(conversation["skipped"])
    while history and history[-1]["turn_id"] == turn_id:
        change = history.pop()
        field = change["field"]
        fields.append(field)
        values.pop(field, None)
        if change["before"] is not None:
            values[field] = change["before"]
        skipped = [name for name in skipped if name != field] + ([field] if change["skipped"] else [])
    left: ConversationState = {
        **conversation,
        "values": values,
        "skipped": skipped,
        "history": history,
        "confirming": None,
        "choosing": [],
        "attempts": {name: count for name, count in conversation["attempts"].items() if name not in fields},
    }
    return left, list(dict.fromkeys(fields))
