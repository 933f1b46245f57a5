"""Written numbers and dates, each in one normal form.

Ambiguous numbers have both readings: 1.234 is either a thousand and some, or one and some.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from phylactery_riskgate.domain.intent.languages import MONTHS

_MAX_DIGITS: Final = 40
_ISO = re.compile(r"(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4}|\d{2})(?!\d)")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th|º|o|ª)?")
_YEAR = re.compile(r"\d{4}")
_BETWEEN: Final = frozenset({"of", "de", "del", "the"})
_MONTHS_OF_YEAR, _DAYS_OF_MONTH, _CENTURY = 12, 31, 2000
_THOUSAND: Final = 3
_PLAIN: Final = 10**15
"""Below this magnitude, Python writes a whole number in the same form, in a tenth of the time."""
_SHORTEST_DATE: Final = len("1-1-24")
_LETTERS: Final = ":"
FARTHEST: Final = 4
"""The number of tokens allowed between the parts of a written date."""


def number(value: Any) -> str:
    """Return the normal form of a number, or an empty string if it is too long to be meaningful."""
    if type(value) is int and -_PLAIN < value < _PLAIN:
        return str(value)
    try:
        exact = Decimal(repr(value) if isinstance(value, float) else value)
    except (InvalidOperation, ValueError, TypeError):
        return ""
    if not exact.is_finite() or abs(exact.adjusted()) >= _MAX_DIGITS:
        return ""
    return format(exact.normalize() if exact else Decimal(0), "f")


def grouped_numbers(tokens: Sequence[str]) -> Iterator[str]:
    """Return the numbers that are written with spaces: 10 000."""
    for place in range(len(tokens) - 1):
        if len(tokens[place]) <= _THOUSAND and tokens[place].isdigit():
            whole = tokens[place]
            for part in tokens[place + 1 : place + FARTHEST]:
                if len(part) != _THOUSAND or not part.isdigit():
                    break
                whole += part
                yield number(whole)


def numbers_in(written: str) -> tuple[str, ...]:
    """Return the possible readings of a text that is one written number, or an empty result."""
    if len(written) > _MAX_DIGITS or not written[:1].isdigit() or not written[-1:].isdigit():
        return ()
    plain = written.replace("'", "")
    if plain.isdigit():
        return tuple(filter(None, (number(plain),)))
    if not plain.replace(".", "").replace(",", "").isdigit():
        return ()
    last = max(plain.rfind("."), plain.rfind(","))
    mark = plain[last]
    whole, part = plain[:last], plain[last + 1 :]
    other = "," if mark == "." else "."
    if mark in whole:
        groups = plain.split(mark)
        thousands = other not in plain and all(len(group) == _THOUSAND for group in groups[1:])
        return tuple(filter(None, (number("".join(groups)),))) if thousands else ()
    readings = [f"{whole.replace(other, '')}.{part}"]
    if other not in whole and len(part) == _THOUSAND and len(whole) <= _THOUSAND:
        readings.append(whole + part)
    return tuple(dict.fromkeys(filter(None, map(number, readings))))


def written_forms(norm: str) -> list[str]:
    """Return the forms in which people write a number."""
    whole, _, part = norm.partition(".")
    sign, whole = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    grouped, filled = f"{int(whole):,}", part.ljust(2, "0")
    dotted, spaced = grouped.replace(",", "."), grouped.replace(",", " ")
    exact = (f"{whole}.{filled}", f"{whole},{filled}", f"{grouped}.{filled}", f"{dotted},{filled}")
    forms = [norm, *(sign + form for form in (*exact, *(() if part else (grouped, dotted, spaced))))]
    return list(dict.fromkeys(forms))


def dates_in_token(token: str) -> Iterator[str]:
    """Return the days that a token in figures can mean, as year-month-day."""
    if len(token) < _SHORTEST_DATE or not token[0].isdigit():
        return
    found = _ISO.match(token)
    if found:
        yield from _day(found[1], found[2], found[3])
        return
    found = _DAY_FIRST.match(token)
    if found:
        year = found[3] if len(found[3]) > len("24") else str(_CENTURY + int(found[3]))
        yield from dict.fromkeys([*_day(year, found[2], found[1]), *_day(year, found[1], found[2])])


def dates_of(tokens: Sequence[str]) -> Iterator[str]:
    """Return every day that the tokens of a text name, in figures or with the name of a month."""
    yield from figured_dates(tokens)
    for date, _ in spoken_dates(tokens):
        yield date


def figured_dates(tokens: Sequence[str]) -> Iterator[str]:
    """Return the days written in figures only."""
    # A token begins with a letter or a digit, and digits sort before letters: the cheapest way to scan thousands.
    for token in [token for token in tokens if token < _LETTERS and len(token) >= _SHORTEST_DATE]:
        yield from dates_in_token(token)


def spoken_dates(tokens: Sequence[str]) -> Iterator[tuple[str, set[int]]]:
    """Return the days written with a month's name (--month-day if without a year), and the tokens they use."""
    if MONTHS.keys().isdisjoint(tokens):
        return
    for place, token in enumerate(tokens):
        month = MONTHS.get(token)
        if month is None:
            continue
        for step in (1, -1):
            day_place = _next(tokens, place, step)
            found = _DAY.fullmatch(tokens[day_place]) if day_place >= 0 else None
            if found is None:
                continue
            year_place = _next(tokens, max(place, day_place), 1)
            dated = year_place >= 0 and _YEAR.fullmatch(tokens[year_place]) is not None
            taken = {place, day_place, year_place} if dated else {place, day_place}
            for date in _day(tokens[year_place] if dated else "-", str(month), found[1]):
                yield date, taken


def _next(tokens: Sequence[str], place: int, step: int) -> int:
    for distance in range(1, FARTHEST):
        at = place + step * distance
        if not 0 <= at < len(tokens):
            return -1
        if tokens[at] not in _BETWEEN:
            return at
    return -1


def _day(year: str, month: str, day: str) -> Iterator[str]:
    if 1 <= int(month) <= _MONTHS_OF_YEAR and 1 <= int(day) <= _DAYS_OF_MONTH:
        yield f"{year}-{int(month):02}-{int(day):02}"


def yearless(date: str) -> str:
    """Return a day without its year."""
    return f"--{date[-5:]}"
