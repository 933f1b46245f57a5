"""Detection of computed values: an amount from other amounts, a day from "tomorrow"."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

from phylactery_riskgate.domain.intent.index import TaskIndex
from phylactery_riskgate.domain.intent.languages import CALCULATING, WEEKDAYS
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token

_MAX_NUMBERS: Final = 24
_ROUNDING: Final = 0.006
"""Half a cent plus a margin: amounts are rounded once."""
_PARTS: Final = (2.0, 3.0, 4.0)
_PERCENT: Final = 100.0
_DAYS: Final = {"today": 0, "tonight": 0, "hoy": 0, "tomorrow": 1, "manana": 1, "yesterday": -1, "ayer": -1}
_WEEK: Final = 7


def asks_to_calculate(index: TaskIndex) -> bool:
    """Return True if the user's words ask for a calculation."""
    return not CALCULATING.isdisjoint(index.words.atom_places)


def known_numbers(index: TaskIndex, field: str, *, bound: bool, picks: bool = False) -> list[float]:
    """Return the user's numbers, and those in fields of what they named or of anything listed."""
    found = dict.fromkeys(float(one) for one in sorted(index.words.numbers)[:_MAX_NUMBERS])
    for place, result in enumerate(index.results):
        for value, read in result.numbers:
            if len(found) >= _MAX_NUMBERS:
                return list(found)
            fits = value.kind[0] == "o" or value.field == field
            if fits and (not bound or index.is_bound(place, value, picks=picks)):
                found[read] = None
    return list(found)


def is_calculated(wanted: float, numbers: Sequence[float], percents: Sequence[float]) -> bool:
    """Return True if an amount is a sum, difference, share or percentage of known ones, or two such steps."""
    terms = sorted({*numbers, *_steps(numbers, percents)})
    if _holds(terms, wanted):
        return True
    return any(_holds(terms, rest) for one in numbers for rest in (wanted - one, one - wanted, wanted + one))


def _steps(numbers: Sequence[float], percents: Sequence[float]) -> Iterator[float]:
    for one in numbers:
        yield from (one / parts for parts in _PARTS)
        yield one * _PARTS[0]
        for other in numbers:
            yield one + other
            yield abs(one - other)
        for part in percents:
            yield from (one * part / _PERCENT, one * (1 + part / _PERCENT), one * (1 - part / _PERCENT))


def _near(one: float, other: float) -> bool:
    return abs(one - other) < _ROUNDING


def _holds(ordered: Sequence[float], wanted: float) -> bool:
    place = bisect_left(ordered, wanted - _ROUNDING)
    return place < len(ordered) and _near(ordered[place], wanted)


def is_relative_day(index: TaskIndex, day: str) -> bool | None:
    """Return True if a day is the one the user's relative word means; None if today's date is unknown."""
    today = _today(index)
    wanted = _date(day)
    if today is None or wanted is None:
        return None
    distance = (wanted - today).days
    said = index.words.relative_days
    return any(
        _DAYS.get(word) == distance
        or (word in WEEKDAYS and wanted.weekday() == WEEKDAYS[word] and abs(distance) <= 2 * _WEEK)
        for word in said
    )


def _today(index: TaskIndex) -> date | None:
    """Return the only day that a tool without arguments returned as its whole result, if only the system writes it."""
    for result in index.results:
        if not result.arguments and len(result.values) == 1 and result.values[0].kind[0] == "s":
            for day in dates_in_token(result.values[0].norm.partition(" ")[0]):
                return _date(day)
    return None


def _date(day: str) -> date | None:
    try:
        return date.fromisoformat(day)
    except ValueError:
        return None
