"""Dates that are relative to another one: the day before it, tomorrow as of the reminder's own day."""

from __future__ import annotations

from calendar import monthrange
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from typing import Any, Final

from phylactery_understanding.language.numbers import readings
from phylactery_understanding.language.text import Kind, Token, tokenize
from phylactery_understanding.language.times import Feature, read_times, times_of
from phylactery_understanding.language.vocabulary import word_map, word_set

_YEAR: Final = 12
_UNITS: Final[Mapping[str, Any]] = word_map("relative_units")
EARLIER: Final = word_set("earlier")


def shifted(
    tokens: Sequence[Token], said: frozenset[Feature], everything: frozenset[Feature], day: date
) -> frozenset[Feature]:
    """Return a time relative to another: the day before it, an hour earlier. Empty if it names none."""
    texts = [one.text for one in tokens]
    for at, text in enumerate(texts):
        unit = _UNITS.get(text)
        if unit is None or texts[at + 1 : at + 2] == [] or texts[at + 1] not in EARLIER:
            continue
        moment = day_of(everything, day)
        number = next((int(one) for one in readings(texts[at - 1]) if one == int(one)), 1) if at else 1
        if unit == "hour":
            hours = [one for one in everything if one[0] == "hour"]
            if len(hours) != 1:
                return frozenset()
            earlier = int(str(hours[0][1])) - number
            rest = {one for one in everything if one[0] != "hour"}
            return (
                frozenset(rest | set(times_of(f"{earlier}:{int(str(hours[0][2])):02}").features))
                if earlier > 0
                else frozenset()
            )
        if moment is None:
            return frozenset()
        moved = _months_before(moment, number) if unit == "month" else moment - timedelta(days=number * unit)
        return frozenset(
            {("date", moved.day), ("month", moved.month), *(one for one in said if one[0] in {"hour", "part"})}
        )
    return frozenset()


def due_day(said: frozenset[Feature], day: date | None) -> date | None:
    """Return the day of a call's time, as it says it."""
    exact = [one[1] for one in said if one[0] == "iso" and isinstance(one[1], date)]
    if exact:
        return exact[0]
    ahead = [one[1] for one in said if one[0] == "day"]
    if day is not None and len(ahead) == 1:
        return day + timedelta(int(str(ahead[0])))
    return day_of(said, day) if day is not None else None


def is_of_date(token: Token) -> bool:
    """Return True if a word is one of a date: 3, diciembre."""
    return token.text.isdigit() or bool(read_times([Token("1", "1", Kind.NUMBER, 0, 1), token]).features)


def without_day(text: str, ahead: int) -> str:
    """Return a text without the word for the day that is so many days ahead: 0 is today."""
    words = [one for one in tokenize(text) if one.kind is Kind.WORD and times_of(one.raw).features == {("day", ahead)}]
    for one in reversed(words):
        text = f"{text[: one.start]}{text[one.stop :].lstrip()}"
    return text


def _months_before(day: date, months: int) -> date:
    """Return the same day of an earlier month, or the last one of a month that is too short."""
    years, month = divmod(day.year * _YEAR + day.month - 1 - months, _YEAR)
    return date(years, month + 1, min(day.day, monthrange(years, month + 1)[1]))


def day_of(said: frozenset[Feature], day: date) -> date | None:
    """Return the only day given by its date, as its next occurrence from a day on."""
    dates = {int(str(one[1])) for one in said if one[0] == "date"}
    months = {int(str(one[1])) for one in said if one[0] == "month"}
    if len(dates) != 1 or len(months) != 1:
        return None
    for year in (day.year, day.year + 1):
        try:
            found = date(year, *months, *dates)
        except ValueError:
            return None
        if found >= day:
            return found
    return None
