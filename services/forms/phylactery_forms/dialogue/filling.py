"""Values a message gives to fields it was not asked for; one answer never fills another field by accident."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from phylactery_forms.definitions.model import DISTINCTIVE, FREE, UNMISTAKABLE, Field, Form
from phylactery_forms.dialogue.reading import accepted, valid_value
from phylactery_forms.dialogue.state import ConversationState, applies, asking_next, put
from phylactery_forms.dialogue.words import named_at, words_of
from phylactery_forms.values.model import Context, Found, Problem


def beside(
    form: Form,
    conversation: ConversationState,
    text: str,
    context: Context,
    *,
    target: Field | None = None,
    taken: Sequence[tuple[int, int]] = (),
) -> dict[str, Found]:
    """Return the values of further fields in a message: empty ones, that are named in it or cannot be anything else.

    Two empty fields of one type are filled by their names alone; beside a question that the message does not answer,
    only an address or number that is unmistakable needs no name. ``taken`` are the spans that are used already.
    """
    if target is not None and target.type.name in FREE:
        return {}
    said = words_of(text)
    empty = [
        one
        for one in form.fields
        if one is not target
        and one.id not in conversation["values"]
        and one.id not in conversation["skipped"]
        and applies(one, conversation)
        and one.type.name in DISTINCTIVE | {"choice", "number"}
    ]
    kinds = Counter(one.type.name for one in [*empty, *([target] if target is not None else [])])
    used, filled = list(taken), dict[str, Found]()
    sure = DISTINCTIVE if taken or target is None else UNMISTAKABLE
    for one in empty:
        span = named_at(one, said.folded)
        alone = one.type.name in sure and kinds[one.type.name] == 1
        if not alone and (span is None or span.stop >= len(said.tokens)):
            continue
        offset = 0 if alone or span is None else said.tokens[span.stop].start
        found = accepted(one, said.text[offset:], context)
        if found is None:
            continue
        place = Found(found.value, found.start + offset, found.end + offset, found.whole)
        figure = one.type.name == "money" and text[place.start : place.end].strip().isdecimal() and span is None
        if not figure and not any(place.start < stop and start < place.end for start, stop in used):
            filled[one.id] = place
            used.append((place.start, place.end))
    return filled


def prefilled(
    form: Form, conversation: ConversationState, text: str, context: Context, turn_id: str
) -> ConversationState:
    """Return the state with what the message that began the form gives already."""
    found = beside(form, conversation, _without_trigger(form, text), context)
    return with_values(form, conversation, {name: one.value for name, one in found.items()}, context, turn_id)


def _without_trigger(form: Form, text: str) -> str:
    """Return what a message says behind the words that began the form: they are no values (una cita is no hour)."""
    said = words_of(text)
    phrases = [words_of(phrase).folded for some in form.triggers.values() for phrase in some]
    spans = [
        (place, place + len(phrase))
        for phrase in phrases
        for place in range(len(said.folded) - len(phrase) + 1)
        if phrase and said.folded[place : place + len(phrase)] == phrase
    ]
    if not spans:
        return text
    start, stop = max(spans, key=lambda span: span[1] - span[0])
    return f"{said.text[: said.tokens[start].start]}, {said.text[said.tokens[stop - 1].stop :]}"


def with_values(
    form: Form, conversation: ConversationState, values: Mapping[str, str], context: Context, turn_id: str
) -> ConversationState:
    """Return the state with values from outside; each is validated, and one that does not hold is left to be asked."""
    for name, value in values.items():
        one = form.by_id.get(name)
        if one is None or not applies(one, conversation):
            continue
        checked = valid_value(one, value, context)
        if not isinstance(checked, Problem):
            conversation = put(conversation, name, checked, turn_id)
    return asking_next(form, conversation)


def adopted(form: Form, conversation: ConversationState, context: Context) -> ConversationState:
    """Return the state for a form that changed meanwhile: what still fits is kept, the rest is asked again."""
    kept = {
        name: value
        for name, value in conversation["values"].items()
        if name in form.by_id and not isinstance(valid_value(form.by_id[name], value["value"], context), Problem)
    }
    left: ConversationState = {
        **conversation,
        "version": form.hash,
        "values": kept,
        "skipped": [name for name in conversation["skipped"] if name in form.by_id and form.by_id[name].optional],
        "history": [one for one in conversation["history"] if one["field"] in form.by_id],
        "attempts": {},
        "confirming": None,
        "choosing": [],
        "doubt": None,
        "status": "collecting",
    }
    return asking_next(form, left)
