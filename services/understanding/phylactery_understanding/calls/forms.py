"""Requests with one value per line: "New ticket", "repo: web", "title: It breaks".

The lines around the fields say what is to be done, and are parsed like any other words; each field is the value of the
argument that it names. As with an ask, both directions count: a field that the call does not use and an argument that
no field names are each a reason to ask the person.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from phylactery_understanding.calls.content.quotation import is_written_so
from phylactery_understanding.calls.proposal import CURRENCIES, Argument, Call, names_of, plain_name, plain_values
from phylactery_understanding.language.numbers import readings
from phylactery_understanding.language.text import STEM, Kind, Token, fold, is_disguised, tokenize
from phylactery_understanding.language.times import read_times, same_time, times_of, unread_time
from phylactery_understanding.language.vocabulary import word_groups, word_set
from phylactery_understanding.requests.model import Fault, Request
from phylactery_understanding.requests.parser import parse

_FEWEST, _MOST = 2, 20
_LONGEST: Final = 4_000
"""The maximum length of a field's line, in characters."""
_KEY_WORDS: Final = 3
_JOINTS: Final = (": ", "= ", " - ", " – ")
_BULLETS: Final = "-*• \t"
_NUMBER: Final = re.compile(r"[€$£]?\d[\d.,]{0,15}(?: ?(?:[€$£]|[^\W\d_]{2,8}))?")
_SMALL: Final = word_set("form_fillers")
_OF_KEYS: Final = word_set("key_fillers")
_FILL: Final = word_set("field_time_fillers")
_UNREADABLE: Final = frozenset({"length", "disguise", "mark"})
_CALLED: Final[Mapping[str, tuple[str, ...]]] = word_groups("field_names")


@dataclass(frozen=True, slots=True)
class Form:
    """The fields of a message by name, and the request around them."""

    fields: tuple[tuple[str, str], ...]
    around: Request


@lru_cache(maxsize=16)
def read_form(text: str) -> Form | None:
    """Return the form that a message is, or None if it does not have two consecutive lines with fields."""
    lines = text.splitlines()
    found = [(at, field) for at, line in enumerate(lines) if (field := _field(line)) is not None]
    places = [at for at, _ in found]
    if not _FEWEST <= len(found) <= _MOST or places != list(range(places[0], places[-1] + 1)) or is_disguised(text):
        return None
    around = ("\n".join(lines[: places[0]]), "\n".join(lines[places[-1] + 1 :]))
    return Form(tuple(field for _, field in found), parse("\n\n".join(part for part in around if part.strip())))


def _field(line: str) -> tuple[str, str] | None:
    """Return the name and value in a line, or None if it is not a field."""
    if len(line) > _LONGEST:
        return None
    said = line.strip().lstrip(_BULLETS)
    cut = min(((at, joint) for joint in _JOINTS if (at := said.find(joint)) > 0), default=None)
    if cut is None:
        return None
    key, value = said[: cut[0]].strip(), said[cut[0] + len(cut[1]) :].strip()
    return (key, value) if value and key[:1].isalpha() and len(key.split()) <= _KEY_WORDS else None


def fault_of(form: Form, call: Call) -> Fault | None:
    """Return how a call deviates from a form, or None if every field and argument agree."""
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
    timed = [value for key, value in form.fields if any(_names(key, one) for one in timely)]
    if not all(map(_is_time, timed)):
        return Fault("time", timely[0].name)
    said = [times_of(value).features for value in timed]
    called = [times_of(str(one.value)).features for one in timely]
    if timely and not same_time(frozenset().union(*said), frozenset().union(*called), call.day):
        return Fault("time", timely[0].name)
    return Fault("leftover", unused[0][0]) if unused else None


def asks(form: Form, verbs: Collection[str], nouns: Collection[str]) -> bool:
    """Return True if the lines around a form explicitly ask for a thing: new ticket please, add it.

    ``verbs`` are the verb forms allowed, and ``nouns`` the stems of their object.
    """
    words, texts = form.around.lexicon, [one.text for one in form.around.tokens]
    things = pronouns = 0
    place = 0
    while place < len(texts):
        token = form.around.tokens[place]
        size = words.longest(("please", "greet"), texts, place)
        noun = token.kind is Kind.WORD and token.stem in nouns and token.raw.isalnum()
        things, pronouns = things + noun, pronouns + (texts[place] in verbs)
        if not (size or noun or texts[place] in verbs or texts[place] in _SMALL or _is_mark(token)):
            return False
        place += max(size, 1)
    return bool(things or pronouns)


def _is_mark(token: Token) -> bool:
    return token.kind is Kind.BREAK or (token.kind is Kind.MARK and token.text in ".,!:;¡")


def is_readable(request: Request) -> bool:
    """Return True if a message may be a form at all, by its punctuation and length."""
    return request.fault is None or request.fault.kind not in _UNREADABLE


def _names(key: str, argument: Argument) -> bool:
    """Return True if a key is exactly a name of an argument: not "not to", nor "old repo"."""
    known = {fold(part) for part in argument.name.split("_")} | set(_CALLED.get(argument.name.split("_")[0], ()))
    stems = {one for one in names_of(argument.name) if len(one) >= STEM}
    words = [one.text for one in tokenize(key) if one.text not in _OF_KEYS]
    return bool(words) and all(one in known or (len(one) >= STEM and one[:STEM] in stems) for one in words)


def _is_time(said: str) -> bool:
    """Return True if a value is a time and nothing else."""
    tokens = [one for one in tokenize(said) if one.kind is not Kind.MARK]
    times = read_times(tokens)
    rest = [one for at, one in enumerate(tokens) if at not in times.places]
    return bool(times.features) and not unread_time(tokens) and all(one.text in _OF_KEYS | _FILL for one in rest)


def _is_said(said: str, argument: Argument) -> bool:
    value = argument.value
    if isinstance(value, list):
        parts = [one for one in re.split(r",| y | and |;", said) if one.strip()]
        values = list(plain_values(value))
        return len(parts) == len(values) and all(
            _is_value(part.strip(), one, argument) for part, one in zip(parts, values, strict=True)
        )
    return _is_value(said, value, argument)


def _is_value(said: str, value: Any, argument: Argument) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int | float):
        found: list[Decimal] = [one for token in tokenize(said) for one in readings(token.text.lstrip("#"))]
        plain = said.lstrip("#").strip()
        named = [one.text for one in tokenize(said) if one.kind is Kind.WORD]
        whole = _NUMBER.fullmatch(plain) is not None and all(one in CURRENCIES for one in named)
        return whole and set(found) == {Decimal(str(value)).normalize()}
    text = str(value)
    if argument.role == "content" and not argument.control:
        return is_written_so(said, text) or is_written_so(said.rstrip("."), text)
    code = fold(said.strip())
    return plain_name(said) == plain_name(text) or text.lower() in CURRENCIES.get(code, "").split()
