"""A model's opinion of a message in a form: it counts only where the person's own words bear it out.

A value counts if the field takes it, its quote stands in the message, and this library reads the same value in the
quote alone. One that the quote does not yield, or over which the message has an operator ("not", "my wife's", a
question), is asked back as any doubtful answer; one whose quote the person did not write is no value at all.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from phylactery_forms.definitions.model import Field, Form
from phylactery_forms.dialogue.answers import Reading, operator_over
from phylactery_forms.dialogue.reading import accepted, found_in, valid_value
from phylactery_forms.dialogue.state import ConversationState, applies
from phylactery_forms.dialogue.words import words_of
from phylactery_forms.values.model import Context, Found, Problem

_NOT_PROVIDED: Final = frozenset({"NOT_PROVIDED", "INVALID", "NONE", "NULL", ""})
"""What a model answers instead of a value."""


@dataclass(frozen=True, slots=True)
class Quoted:
    """A value as a model read it, and the words of the person that it read it in."""

    value: str
    quote: str


@dataclass(frozen=True, slots=True)
class Opinion:
    """What a model read in a message: values by field, the field it corrects, and what else it may be."""

    values: Mapping[str, Quoted] = field(default_factory=dict)
    corrects: str = ""
    off_topic: bool = False
    wants_person: bool = False


def open_fields(form: Form, conversation: ConversationState) -> list[Field]:
    """Return the fields that a message may still fill, in the form's order."""
    done = {*conversation["values"], *conversation["skipped"]}
    return [one for one in form.fields if one.id not in done and applies(one, conversation)]


def borne_out(one: Field, quoted: Quoted | None, text: str, context: Context) -> Reading:
    """Return the reading of a field by a model's word: certain, doubtful, or none."""
    span = None if quoted is None else _place_of(quoted.quote, text)
    if quoted is None or span is None or quoted.value.strip().upper() in _NOT_PROVIDED:
        return Reading()
    value = _canonical(one, quoted.value, context)
    if value is None:
        return Reading()
    start, stop = span
    read = found_in(one, text[start:stop], context)
    found = [] if isinstance(read, Problem) else read
    said = Found(value, start, stop, whole=False, implied=True)  # it is always said back
    if {each.value for each in found} != {value}:
        return Reading((said,), "left_over")
    values = [Found(value, start + each.start, start + each.end, whole=False) for each in found]
    return Reading((said,), operator_over(one, words_of(text), values))


def beside_it(
    form: Form, conversation: ConversationState, opinion: Opinion, text: str, context: Context, *, target: Field
) -> dict[str, str]:
    """Return the certain values of further open fields, each in words of its own that no other open field takes.

    A model may say of any figure that it is any field's; where two could have it, only the person tells which.
    """
    fields = open_fields(form, conversation)
    taken = [span for span in [_span_of(opinion, target.id, text)] if span is not None]
    given = dict[str, str]()
    for one in fields:
        quoted, span = opinion.values.get(one.id), _span_of(opinion, one.id, text)
        if one is target or quoted is None or span is None or any(_meet(span, other) for other in taken):
            continue
        others = (other for other in [*fields, target] if other is not one)
        read = borne_out(one, quoted, text, context)
        if read.certain and not any(accepted(other, quoted.quote, context) for other in others):
            given[one.id] = read.values[0].value
            taken.append(span)
    return given


def _canonical(one: Field, value: str, context: Context) -> str | None:
    checked = valid_value(one, value, context)
    if isinstance(checked, str):
        return checked
    read = accepted(one, value, context)
    return None if read is None else read.value


def _span_of(opinion: Opinion, name: str, text: str) -> tuple[int, int] | None:
    quoted = opinion.values.get(name)
    return None if quoted is None else _place_of(quoted.quote, text)


def _place_of(quote: str, text: str) -> tuple[int, int] | None:
    """Return where a quote stands in a message, as whole words; case and spaces do not matter."""
    words = r"\s+".join(map(re.escape, quote.split()))
    found = re.search(rf"(?<!\w){words}(?!\w)", text, re.IGNORECASE) if words else None
    return None if found is None else found.span()


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] < other[1] and other[0] < one[1]
