"""Time phrases in Spanish and English, as RE2 expressions and as a moment.

The expressions serve two purposes: tools' patterns are built from them, and they parse the matched words. A time is a
few parts in any order: a day, a part of the day, a time of the day, a distance, a repetition, or an ISO 8601 time.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final

from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.timeparse.recurrence import Rule, occurrences, to_local, to_us
from phylactery_agent.timeparse.vocabulary import (
    AFTERNOON,
    HALVES,
    MONTHS,
    PART_TIMES,
    PART_WORDS,
    PARTS,
    UNITS,
    WEEKDAYS,
    fold,
    number_of,
    word,
)

DEFAULT_TIME: Final = time(9)
"""The default time of a day given without a time."""
_MINUTES: Final = {"minute": 1, "hour": 60}
_MAX_DISTANCE: Final = 10_000
_FARTHEST: Final = timedelta(days=3_660)
_NOON: Final = 12
_COMPILED: Final = tuple((kind, chat_expression(r"(?i)^(?:" + part + r")(?:,?\s+|$)")) for kind, part in PARTS)


_ALONE: Final = frozenset({"distance", "exact"})
"""Kinds of part that replace all of a time."""
_HALF_OF_DAY: Final = re.compile(r"(?i)\s*(?:(?:d|de|por)\s+la\s+|in\s+the\s+)\w+$|\s*at\s+night$|\s*[ap]\.?\s?m\.?$")


class WhenError(ValueError):
    """Error for words that are not a time, or a time in the past. code is TIME_NOT_UNDERSTOOD or TIME_PAST."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class When:
    """A moment in microseconds since the epoch, and its repetition."""

    due_us: int
    rule: Rule | None = None


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts parsed so far."""

    day: Mapping[str, str] | None = None
    part: Mapping[str, str] | None = None
    clock: Mapping[str, str] | None = None
    distance: Mapping[str, str] | None = None
    every: Mapping[str, str] | None = None
    exact: Mapping[str, str] | None = None


def resolve(text: str, *, where: tzinfo, now_us: int, rule: Rule | None = None) -> When:
    """Return the time a text means, relative to a moment in a zone; the repetition is rule or the text's own.

    Raise WhenError.
    """
    said = _read(tidy(text))
    if said.every is not None:
        if rule is not None:
            raise _not_understood("it says twice how it repeats")
        rule = _rule(said.every)
    due = _due(said, where, now_us, rule)
    if due <= now_us:
        raise WhenError("TIME_PAST", "that time is over")
    if due > now_us + _FARTHEST // timedelta(microseconds=1):
        raise _not_understood("it is more than ten years away")
    return When(due, _with_days(rule, to_local(due, where)))


def is_time(text: str) -> bool:
    """Return True if a text consists of the parts of one time; whether that is past depends on the moment."""
    try:
        _read(tidy(text))
    except WhenError:
        return False
    return True


def changed_time(old: str, new: str) -> str:
    """Return a time with what another one says of it: "el sábado a las 8 de la noche", "a las 9" is Saturday at 21.

    What the other one does not say stays: the day, and the half of the day of a clock time that has none.
    """
    before, said = _parts(tidy(old)), _parts(tidy(new))
    kinds = {kind for kind, _, _ in said}
    if _ALONE & (kinds | {kind for kind, _, _ in before}):
        return tidy(new)
    halves = (_HALF_OF_DAY.search(text) for kind, _, text in before if kind == "clock")
    half = next((found.group() for found in halves if found is not None), "")
    named = any(kind == "part" or groups.keys() & {"dayhalf", "ampm", "noon"} for kind, groups, _ in said)
    kept = [text for kind, _, text in before if kind not in kinds]
    words = " ".join([*kept, *(text for _, _, text in said)])
    whole = f"{words}{half}" if half and "clock" in kinds and not named else words
    return whole if is_time(whole) else tidy(new)


def _parts(text: str) -> list[tuple[str, Mapping[str, str], str]]:
    """Return the parts of a time with their words."""
    found, place, plain = list[tuple[str, Mapping[str, str], str]](), 0, unaccented(text)
    while place < len(plain):
        kind, groups, end = _first_part(plain[place:])
        found.append((kind, groups, text[place : place + end].strip(" ,")))
        place += end
    return found


def tidy(text: str) -> str:
    """Return the text with single spaces and without trailing punctuation."""
    return " ".join(text.split()).rstrip(" ,:;.")


def _not_understood(why: str) -> WhenError:
    return WhenError("TIME_NOT_UNDERSTOOD", f"the time is not understood: {why}")


def _read(text: str) -> _Said:
    """Parse the parts in turn; each kind may occur once."""
    said, rest = _Said(), unaccented(text)
    while rest:
        kind, groups, end = _first_part(rest)
        if getattr(said, kind) is not None:
            raise _not_understood("it says the same thing twice")
        said, rest = replace(said, **{kind: groups}), rest[end:]
    if said == _Said():
        raise _not_understood("there is none")
    return said


def _first_part(text: str) -> tuple[str, Mapping[str, str], int]:
    """Return the first part of a text: its kind, its groups, and where the next part begins."""
    for kind, found in ((kind, one.match(text)) for kind, one in _COMPILED):
        if found is not None:
            return kind, {name: value for name, value in found.groupdict().items() if value is not None}, found.end()
    raise _not_understood("write it as 2027-03-01 09:00, “tomorrow at 9” or “en 20 minutos”")


def _due(said: _Said, where: tzinfo, now_us: int, rule: Rule | None) -> int:
    now = to_local(now_us, where)
    if said.exact is not None:
        if any((said.day, said.part, said.clock, said.distance)):
            raise _not_understood("an exact time stands alone")
        return _exact(said.exact, where)
    if said.distance is not None:
        if said.day or said.part:
            raise _not_understood("a distance stands alone, or with a time of the day")
        unit, many = _distance(said.distance)
        if unit in _MINUTES:
            if said.clock:
                raise _not_understood("a distance in hours has no time of the day")
            return now_us + round(many * _MINUTES[unit] * 60_000_000)
        day = _moved(now.date(), unit, many)
        return to_us(datetime.combine(day, _clock(said) if said.clock else now.time()), where)
    at = _clock(said)
    if said.day is not None:
        return to_us(_on(said.day, at, now), where)
    if rule is not None:
        return _first(rule, said, at, where, now_us)
    today = datetime.combine(now.date(), at)
    # "This evening" is always today; a time of the day that has passed is tomorrow's.
    return to_us(today if said.part or today > now else today + timedelta(days=1), where)


def _first(rule: Rule, said: _Said, at: time, where: tzinfo, now_us: int) -> int:
    """Return the first time of a rule without a given day."""
    now = to_local(now_us, where)
    start = datetime.combine(now.date(), at)
    monthly = (said.every or {}).get("monthday")
    if monthly is not None:
        start = _month_day(now, int(monthly), at)
    elif not rule.days and to_us(start, where) <= now_us:
        start += timedelta(days=1)
    for moment in occurrences(replace(rule, count=0, until=None, interval=1), start):
        if to_us(moment, where) > now_us:
            return to_us(moment, where)
    raise _not_understood("it never comes")


def _with_days(rule: Rule | None, due: datetime) -> Rule | None:
    """Return the rule with its starting weekday, if it is weekly and names none."""
    if rule is None or rule.frequency != "WEEKLY" or rule.days:
        return rule
    return replace(rule, days=(due.weekday(),))


def _exact(groups: Mapping[str, str], where: tzinfo) -> int:
    try:
        day = date.fromisoformat(groups["iso"])
        at = time.fromisoformat(groups["isotime"]) if "isotime" in groups else DEFAULT_TIME
        offset = groups.get("offset", "")
        if not offset:
            return to_us(datetime.combine(day, at), where)
        moment = datetime.fromisoformat(f"{day}T{at.isoformat()}{offset.upper().replace('Z', '+00:00')}")
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise _not_understood("there is no such day or time") from None


def _clock(said: _Said) -> time:
    """Return the time of the day, moved past noon if the part of the day requires it."""
    if not said.clock:
        return PART_TIMES[_part(said.part)] if said.part else DEFAULT_TIME
    groups = said.clock
    if "noon" in groups:
        return time(_NOON)
    hour = number_of(groups["hour"])
    minute = int(groups.get("minute", "0"))
    if "half" in groups:
        minute, hour = _half(groups["half"], minute, hour)
    half = groups.get("ampm", "").replace(".", "").replace(" ", "").lower()
    part = _part(said.part, groups.get("dayhalf", ""))
    if half in {"am", "pm"}:
        if not 1 <= hour <= _NOON:
            raise _not_understood("there is no such time of the day")
        hour = hour % _NOON + (_NOON if half == "pm" else 0)
    elif part in AFTERNOON and hour <= _NOON:
        if hour == _NOON and part == "night":
            raise _not_understood("say midnight with its day: 2027-03-01 00:00")
        hour = hour % _NOON + _NOON
    try:
        return time(hour, minute)
    except ValueError:
        raise _not_understood("there is no such time of the day") from None


def _part(groups: Mapping[str, str] | None, said: str = "") -> str:
    """Return the part of the day, empty if none was given."""
    said = said or (groups or {}).get("part", "")
    return word(said, PART_WORDS) if said else ""


def _half(text: str, minute: int, hour: int) -> tuple[int, int]:
    if minute:
        raise _not_understood("it says the minutes twice")
    added = HALVES[fold(text)]
    return added % 60, hour - (added < 0)


def _distance(groups: Mapping[str, str]) -> tuple[str, float]:
    many = 0.5 if "halfof" in groups else float(number_of(groups["many"]))
    many += 0.5 if "andhalf" in groups else 0
    unit = word(groups["unit"], UNITS)
    if unit not in _MINUTES and many != int(many):
        raise _not_understood("half a day is said in hours")
    if many > _MAX_DISTANCE:
        raise _not_understood("it is too far away")
    return unit, many


def _moved(day: date, unit: str, many: float) -> date:
    """Return a day the given number of units later, clamped to the last day of a shorter month."""
    if unit in {"day", "week"}:
        return day + timedelta(days=int(many) * (7 if unit == "week" else 1))
    month = day.year * 12 + day.month - 1 + int(many) * (12 if unit == "year" else 1)
    year, number = month // 12, month % 12 + 1
    if year > date.max.year - 1:
        raise _not_understood("it is too far away")
    return day.replace(year=year, month=number, day=min(day.day, calendar.monthrange(year, number)[1]))


def _on(groups: Mapping[str, str], at: time, now: datetime) -> datetime:
    """Return the local time of a given day."""
    today = now.date()
    for name, days in (("today", 0), ("aftertomorrow", 2), ("tomorrow", 1)):
        if name in groups:
            return datetime.combine(today + timedelta(days=days), at)
    if "weekday" in groups:
        ahead = (word(groups["weekday"], WEEKDAYS) - today.weekday()) % 7
        if ahead == 0 and ("next" in groups or datetime.combine(today, at) <= now):
            ahead = 7
        return datetime.combine(today + timedelta(days=ahead), at)
    try:
        if "onlyday" in groups:
            return _month_day(now, int(groups["onlyday"]), at)
        number = int(groups["monthnumber"]) if "monthnumber" in groups else word(groups["month"], MONTHS)
        if "year" in groups:
            return datetime.combine(date(int(groups["year"]), number, int(groups["dayofmonth"])), at)
        for year in range(today.year, today.year + 9):  # 29 February is at most eight years away
            if int(groups["dayofmonth"]) <= calendar.monthrange(year, number)[1]:
                moment = datetime.combine(date(year, number, int(groups["dayofmonth"])), at)
                if moment > now:
                    return moment
    except (ValueError, calendar.IllegalMonthError):
        pass
    raise _not_understood("there is no such day")


def _month_day(now: datetime, day: int, at: time) -> datetime:
    """Return the next day with that number."""
    month = now.year * 12 + now.month - 1
    for later in range(month, month + 14):
        year, number = later // 12, later % 12 + 1
        if 1 <= day <= calendar.monthrange(year, number)[1]:
            moment = datetime.combine(date(year, number, day), at)
            if moment > now:
                return moment
    raise _not_understood("there is no such day")


def _rule(groups: Mapping[str, str]) -> Rule:
    """Return the parsed repetition."""
    if "workdays" in groups:
        return Rule("WEEKLY", days=(0, 1, 2, 3, 4))
    if "everyday" in groups:
        names = fold(groups["everyday"]).replace(",", " ").split()
        days = {word(name, WEEKDAYS) for name in names if name not in {"y", "and", "los"}}
        return Rule("WEEKLY", days=tuple(sorted(days)))
    if "monthday" in groups:
        return Rule("MONTHLY")
    unit = word(groups.get("everyunit", groups.get("adverb", "day")), UNITS)
    many = 2 if "other" in groups else number_of(groups.get("everymany", "1"))
    frequency = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}[unit]
    if not 1 <= many <= 366:  # noqa: PLR2004 - what a rule takes
        raise _not_understood("it repeats too rarely")
    return Rule(frequency, many)
