"""Extraction and validation of a value by its type, and its form for a person."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from phylactery_forms.values import choices, clock, contacts, dates, identities, money, names, numbers, patterns
from phylactery_forms.values.message import MAX_CHARACTERS, Message, read_message
from phylactery_forms.values.model import Context, Found, Language, Options, Problem, ValueType

_Find = Callable[[Options, Message, Context], "list[Found] | Problem"]
_Check = Callable[[Options, str, Context], "str | Problem"]
_Show = Callable[[Options, str, Language], str]

_LONGEST: Final[Mapping[str, int]] = {"text": 20_000}
"""The maximum length of a message that is searched, where it is not MAX_CHARACTERS."""


def _as_it_is(_: Options, value: str, __: Language) -> str:
    return value


def _without_options(show: Callable[[str, Language], str]) -> _Show:
    return lambda _, value, language: show(value, language)


@dataclass(frozen=True, slots=True)
class _Kind:
    find: _Find
    check: _Check
    show: _Show = _as_it_is


_KINDS: Final[Mapping[str, _Kind]] = {
    "email": _Kind(contacts.find_email, contacts.check_email),
    "phone": _Kind(contacts.find_phone, contacts.check_phone, _without_options(contacts.show_phone)),
    "url": _Kind(contacts.find_url, contacts.check_url),
    "number": _Kind(numbers.find_number, numbers.check_number, _without_options(numbers.show_number)),
    "money": _Kind(money.find_money, money.check_money, _without_options(money.show_money)),
    "text": _Kind(names.find_text, names.check_text),
    "date": _Kind(dates.find_date, dates.check_date, _without_options(dates.show_date)),
    "time": _Kind(clock.find_time, clock.check_time, _without_options(clock.show_time)),
    "choice": _Kind(choices.find_choice, choices.check_choice, choices.show_choice),
    "yes_no": _Kind(choices.find_yes_no, choices.check_yes_no, _without_options(choices.show_yes_no)),
    "person_name": _Kind(names.find_person_name, names.check_person_name),
    "address": _Kind(names.find_address, names.check_address),
    "national_id": _Kind(identities.find_national_id, identities.check_national_id),
    "file": _Kind(patterns.find_file, patterns.check_file),
    "pattern": _Kind(patterns.find_pattern, patterns.check_pattern),
}


def extract(type: ValueType, text: str, context: Context) -> list[Found] | Problem:  # noqa: A002 - the interface's name
    """Return every value of a type in a message, best first; empty if none, a Problem if somebody tried."""
    longest = _LONGEST.get(type.name, MAX_CHARACTERS)
    if len(text) > longest:
        return Problem("too_long", {"maximum": str(longest)})
    kind = _KINDS[type.name]
    found = kind.find(type.options, read_message(text), context)
    if isinstance(found, Problem) or len(found) < 2:
        return found
    return sorted(
        found,
        key=lambda one: (isinstance(kind.check(type.options, one.value, context), Problem), not one.whole),
    )


def validate(type: ValueType, value: str, context: Context) -> str | Problem:  # noqa: A002 - the interface's name
    """Return the canonical form of a value, or why it has none."""
    longest = _LONGEST.get(type.name, MAX_CHARACTERS)
    if len(value) > longest:
        return Problem("too_long", {"maximum": str(longest)})
    return _KINDS[type.name].check(type.options, value, context)


def shown(type: ValueType, value: str, language: Language) -> str:  # noqa: A002 - the interface's name
    """Return a canonical value as a person reads it: viernes 27 de noviembre de 2026."""
    return _KINDS[type.name].show(type.options, value, language)
