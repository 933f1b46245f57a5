"""Corrections: which earlier answer a message changes, if it changes one.

A message corrects if it has a marker and a field to be meant, if it is a value of a filled field's type where another
was asked, or if it gives a new value after everything was read back. A message that the asked field takes is an answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from phylactery_understanding.replies.answers import read_answer

from phylactery_forms.definitions.model import DISTINCTIVE, FREE, Field, Form
from phylactery_forms.dialogue.reading import accepted, found_in, taken_whole
from phylactery_forms.dialogue.state import ConversationState, applies
from phylactery_forms.dialogue.words import Span, Words, consists_of, find, is_question, named_at, size_at, words_of
from phylactery_forms.values.model import Context, Found, Problem

_TOLD: Final = DISTINCTIVE | {"number", "choice", "yes_no"}
"""Types of which a value may be meant without its field being named, once everything was read back."""


@dataclass(frozen=True, slots=True)
class Correction:
    """A correction of a field; ``text`` is the part of the message that holds the new value, empty for none.

    ``field`` is None if it may mean several: ``candidates``.
    """

    field: str | None
    text: str
    candidates: tuple[str, ...] = ()


def correction_in(form: Form, conversation: ConversationState, text: str, context: Context) -> Correction | None:
    """Return what a message corrects, or None if it answers, or is about something else."""
    said = words_of(text)
    filled = [one for one in form.fields if one.id in conversation["values"] and applies(one, conversation)]
    if not filled or not said.tokens or read_answer(text) == "yes":
        return None
    if conversation["choosing"]:
        return _chosen(form, conversation, said)
    return _of(form, conversation, said, filled, context)


def _of(
    form: Form, conversation: ConversationState, said: Words, filled: list[Field], context: Context
) -> Correction | None:
    text, words = said.text, said.folded
    asked = form.by_id.get(conversation["asked"] or "")
    review = conversation["status"] == "review" or conversation["confirming"] is not None
    marked = has_marker(said)
    named = [(one, span) for one in filled if (span := named_at(one, words)) is not None]
    about_asked = asked is not None and named_at(asked, words) is not None and asked not in filled
    if asked is not None and not review and asked.id not in conversation["values"]:
        whole = taken_whole(asked, text, context)
        if about_asked and accepted(asked, _after_name(said, asked), context) is not None:
            return None
        if whole and asked.type.name in FREE and not (marked and named and _says_change(said)):
            return None
        if whole and not (marked and _same_type_before(conversation, form, asked)) and not (marked and named):
            return None
    if named and (marked or review or _gives(said, named[0][0], named[0][1], context)):
        best = _most_telling(named, said, context)
        now = conversation["values"][best.id]["value"]
        return Correction(best.id, "" if _denies(said, best, now) else _value_text(said, best, context))
    if len(words) and consists_of("wrong", words, "beside", "denial"):
        return _which(filled)
    if review and read_answer(text) == "no":
        return None
    return _unnamed(conversation, said, filled, asked, context, marked=marked, review=review)


def _unnamed(
    conversation: ConversationState,
    said: Words,
    filled: list[Field],
    asked: Field | None,
    context: Context,
    *,
    marked: bool,
    review: bool,
) -> Correction | None:
    """Return a correction whose field only its value tells."""
    text = said.text
    if not review and not marked and asked is not None and accepted(asked, text, context) is not None:
        return None
    rest = _after_marker(said)
    read: list[tuple[Field, Found]] = []
    for one in filled:
        name = one.type.name
        telling = name in DISTINCTIVE or ((review or marked) and name in _TOLD and name != "yes_no")
        found = accepted(one, rest, context) if telling else None
        if found is None or found.value == conversation["values"][one.id]["value"]:
            continue
        if found.whole or review or marked:
            read.append((one, found))
    candidates = [one for one, found in read if not any(_holds(other, found) for _, other in read)]
    if len(candidates) > 1 and marked and not review:
        last = _last_filled(conversation)
        candidates = [one for one in candidates if one.id == last] or candidates
    if len(candidates) == 1:
        return Correction(candidates[0].id, rest)
    if candidates:
        return Correction(None, rest, tuple(one.id for one in candidates))
    if not marked:
        return None
    last_field = next((one for one in filled if one.id == _last_filled(conversation)), None)
    if last_field is not None and last_field.type.name not in DISTINCTIVE and rest != text and not review:
        if last_field.type.name not in FREE and taken_whole(last_field, rest, context):
            return Correction(last_field.id, rest)
        return None
    if review and rest.strip() and not is_question(said):
        return _which(filled, rest)
    return None


def _holds(wide: Found, narrow: Found) -> bool:
    """Return True if a value is only a part of another: the 2 of 2 December."""
    inside = wide.start <= narrow.start and narrow.end <= wide.end
    return inside and wide.end - wide.start > narrow.end - narrow.start


def has_marker(said: Words) -> bool:
    """Return True if a message begins with a denial, or has a marker of a correction."""
    words = said.folded
    return bool(size_at("denial", words, 0)) or find("marker", words) is not None


def _says_change(said: Words) -> bool:
    return find("changes", said.folded) is not None or bool(size_at("denial", said.folded, 0))


def _same_type_before(conversation: ConversationState, form: Form, asked: Field) -> bool:
    last = _last_filled(conversation)
    return last is not None and form.by_id[last].type.name == asked.type.name and asked.type.name in DISTINCTIVE


def _last_filled(conversation: ConversationState) -> str | None:
    return next(
        (one["field"] for one in reversed(conversation["history"]) if one["field"] in conversation["values"]), None
    )


def _which(filled: list[Field], rest: str = "") -> Correction:
    """Return a correction of the only field, or of one to be asked for."""
    if len(filled) == 1:
        return Correction(filled[0].id, rest)
    return Correction(None, rest, tuple(one.id for one in filled))


def _chosen(form: Form, conversation: ConversationState, said: Words) -> Correction | None:
    """Return the field that answers which one is meant: by its name, or its number in the list."""
    fields = [form.by_id[name] for name in conversation["choosing"] if name in form.by_id]
    named = [one for one in fields if named_at(one, said.folded) is not None]
    if len(named) == 1:
        return Correction(named[0].id, "")
    number = said.folded[0] if len(said.folded) == 1 else ""
    if number.isdigit() and 0 < int(number[:3]) <= len(fields):
        return Correction(fields[int(number[:3]) - 1].id, "")
    return None


def _most_telling(named: list[tuple[Field, Span]], said: Words, context: Context) -> Field:
    """Return the field that is named by most words, and of which there is a value."""
    return max(named, key=lambda one: (accepted(one[0], said.text, context) is not None, one[1].stop - one[1].start))[0]


def _gives(said: Words, one: Field, span: Span, context: Context) -> bool:
    """Return True if a message begins with a field's name and gives a value: e-mail: ana@example.com."""
    return _leads(said, span) and bool(_after_name(said, one)) and taken_whole(one, _after_name(said, one), context)


def _denies(said: Words, one: Field, value: str) -> bool:
    """Return True if a message denies the name that was taken, without a pause after the no: no me llamo Ana."""
    span = named_at(one, said.folded)
    if one.type.name != "person_name" or span is None or not span.start:
        return False
    before, first = said.tokens[span.start - 1], said.tokens[span.start]
    together = size_at("denial", said.folded, span.start - 1) and not said.text[before.stop : first.start].strip()
    return bool(together) and {*words_of(_after_name(said, one)).folded} <= {*words_of(value).folded}


def _leads(said: Words, span: Span) -> bool:
    return all(size_at("links", said.folded, place) for place in range(span.start))


def _after_name(said: Words, one: Field) -> str:
    span = named_at(one, said.folded)
    return _from(said, span.stop) if span is not None else ""


def _value_text(said: Words, one: Field, context: Context) -> str:
    """Return the part of a message that holds the new value of a field it names."""
    after = _after_name(said, one)
    if after and accepted(one, after, context) is not None:
        return after
    if one.type.name in FREE or one.type.name == "person_name":
        return after
    if after and isinstance(found_in(one, after, context), Problem):
        return after  # somebody tried: it is told what is wrong with it
    return said.text if accepted(one, said.text, context) is not None else ""


def _after_marker(said: Words) -> str:
    """Return a message without the denial and the markers at its beginning."""
    place, words = 0, said.folded
    while place < len(words):
        size = max(size_at("denial", words, place), size_at("marker", words, place))
        if not size:
            break
        place += size
    return _from(said, place) if place else said.text


def _from(said: Words, place: int) -> str:
    """Return the text from a word on, without the words that only link."""
    words = said.folded
    while place < len(words) and (size := max(size_at("links", words, place), size_at("instead", words, place))):
        place += size
    return said.text[said.tokens[place].start :].strip() if place < len(words) else ""
