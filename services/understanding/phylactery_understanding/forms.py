"""Requests in the form of lines that name a value each: "New ticket", "repo: web", "title: It breaks".

The lines around the fields say what is to be done, and are parsed like any other words; each field is the value of the
argument that it names. As with an ask, both directions count: a field that the call does not use and an argument that
no field names are each a reason to ask.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from phylactery_understanding.content import is_written_so
from phylactery_understanding.numbers import readings
from phylactery_understanding.proposal import CURRENCIES, Argument, Call, names_of, plain_values, same_name
from phylactery_understanding.request import Fault, Request, parse
from phylactery_understanding.text import STEM, fold, is_disguised, tokenize
from phylactery_understanding.times import same_time, times_of

_FEWEST, _MOST = 2, 20
_FIELD: Final = re.compile(r"[ \t]*[-*•]?[ \t]*([^\W\d_][^\n:=]{0,29}?)[ \t]*(?::|=|[ \t][-–])[ \t]+(\S[^\n]*)")
_KEY_WORDS: Final = 3
_CALLED: Final[Mapping[str, tuple[str, ...]]] = {
    "title": ("evento", "event", "ticket", "issue", "nombre", "name"),
    "start": ("when", "cuando", "date", "fecha", "hora", "time", "dia", "day"),
    "end": ("when", "cuando", "date", "fecha", "hora", "time"),
    "when": ("date", "fecha", "hora", "time", "dia", "day"),
    "location": ("place", "where", "donde", "sitio", "sala", "room"),
    "attendees": ("people", "who", "quien", "personas", "asistentes", "invitados"),
    "assignee": ("asignar", "owner", "responsable"),
    "to": ("para", "recipient", "destinatario", "a"),
    "customer": ("cliente", "client"),
    "address": ("entrega", "deliver", "ship"),
    "comment": ("observaciones", "notes", "note", "nota", "notas", "remarks"),
    "description": ("details", "detalles", "nota", "note", "notes"),
    "body": ("message", "mensaje", "descripcion", "description", "text", "texto", "details", "detalles"),
    "text": ("message", "mensaje"),
    "repo": ("proyecto", "project"),
    "labels": ("etiquetas", "tags"),
}
"""What the field of an argument is called, beside what people call the argument."""


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a message by their names, and the request that stands around them."""

    fields: tuple[tuple[str, str], ...]
    around: Request


def read_form(text: str) -> Form | None:
    """Return the form that a message is, None where fewer than two lines of it, one behind the other, are fields."""
    lines = text.splitlines()
    found = [(at, match) for at, line in enumerate(lines) if (match := _FIELD.fullmatch(line.rstrip())) is not None]
    found = [(at, match) for at, match in found if len(match[1].split()) <= _KEY_WORDS]
    places = [at for at, _ in found]
    if not _FEWEST <= len(found) <= _MOST or places != list(range(places[0], places[-1] + 1)) or is_disguised(text):
        return None
    rest = "\n\n".join(
        part for part in ("\n".join(lines[: places[0]]), "\n".join(lines[places[-1] + 1 :])) if part.strip()
    )
    return Form(tuple((match[1].strip(), match[2].strip()) for _, match in found), parse(rest))


def fault_of(form: Form, call: Call) -> Fault | None:
    """Return what keeps a form from being filled in as a call has it, None where every field and argument agree."""
    unused = list(form.fields)
    timely: list[Argument] = []
    for argument in call.arguments:
        if argument.default or argument.value in ("", [], None):
            continue
        field = next((one for one in form.fields if _names(one[0], argument)), None)
        if field is None:
            return Fault("value", argument.name)
        if argument.role == "date":
            timely.append(argument)
        elif not _is_said(field[1], argument):
            return Fault("content" if argument.role == "content" else "value", argument.name)
        unused = [one for one in unused if one != field]
    said = [times_of(value).features for key, value in form.fields if any(_names(key, one) for one in timely)]
    called = [times_of(str(one.value)).features for one in timely]
    if timely and not same_time(frozenset().union(*said), frozenset().union(*called), call.day):
        return Fault("time", timely[0].name)
    return Fault("leftover", unused[0][0]) if unused else None


def names_thing(form: Form, call: Call) -> bool:
    """Return whether the lines around a form do no more than name what a call makes: New ticket please."""
    words = form.around.lexicon
    if any(one.text in {"?", "¿"} for one in form.around.tokens):
        return False
    said = [one for one in form.around.tokens if one.raw.isalnum()]
    thing = [one for one in said if one.stem in call.nouns]
    small = ("please", "greet", "article", "stop")
    return bool(thing) and all(one in thing or any(words.holds(name, one.text) for name in small) for one in said)


def _names(key: str, argument: Argument) -> bool:
    words = {one.text for one in tokenize(key)}
    called = {fold(part) for part in argument.name.split("_")} | set(_CALLED.get(argument.name.split("_")[0], ()))
    return bool(words & called) or not {one[:STEM] for one in words if len(one) >= STEM}.isdisjoint(
        one for one in names_of(argument.name) if len(one) >= STEM
    )


def _is_said(said: str, argument: Argument) -> bool:
    value = argument.value
    if isinstance(value, list):
        parts = [one for one in re.split(r",| y | and |;", said) if one.strip()]
        values = list(plain_values(value))
        return len(parts) == len(values) and all(map(_is_value, map(str.strip, parts), values))
    return _is_value(said, value)


def _is_value(said: str, value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        found: Sequence[Decimal] = [one for token in tokenize(said) for one in readings(token.text.lstrip("#"))]
        return bool(found) and set(found) == {Decimal(str(value)).normalize()}
    text = str(value)
    if text.lower() in {code for token in tokenize(said) for code in CURRENCIES.get(token.text, "").split()}:
        return True
    return is_written_so(said, text) or is_written_so(said.rstrip("."), text) or same_name(said, text)
