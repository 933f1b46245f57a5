"""Values a message gives to fields it was not asked for; one answer never fills another field by accident."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from phylactery_forms.definitions.model import DISTINCTIVE, FREE, Field, Form
from phylactery_forms.dialogue.reading import accepted, valid_value
from phylactery_forms.dialogue.state import ConversationState, applies, first_open, put
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
) -> dict[str, str]:
    """Return the values of further fields in a message: empty ones, of a type that tells itself or named in it.

    Two empty fields of one type are filled by their names alone. ``taken`` are the spans that are used already.
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
    used, filled = list(taken), dict[str, str]()
    for one in empty:
        span = named_at(one, said.folded)
        alone = one.type.name in DISTINCTIVE and kinds[one.type.name] == 1
        if not alone and (span is None or span.stop >= len(said.tokens)):
            continue
        offset = 0 if alone or span is None else said.tokens[span.stop].start
        found = accepted(one, said.text[offset:], context)
        if found is None:
            continue
        place = Found(found.value, found.start + offset, found.end + offset, found.whole)
        if not any(place.start < stop and start < place.end for start, stop in used):
            filled[one.id] = found.value
            used.append((place.start, place.end))
    return filled


def prefilled(
    form: Form, conversation: ConversationState, text: str, context: Context, turn_id: str
) -> ConversationState:
    """Return the state with what the message that began the form gives already."""
    return with_values(form, conversation, beside(form, conversation, text, context), context, turn_id)


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
    return {**conversation, "asked": first_open(form, conversation)}


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
        "status": "collecting",
    }
    return {**left, "asked": first_open(form, left)}
