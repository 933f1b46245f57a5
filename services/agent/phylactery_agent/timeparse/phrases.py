"""Time phrases in Spanish and English, as RE2 expressions and as a moment.

The expressions serve two purposes: tools' patterns are built from them, and they parse the matched words. A time is a
few parts in any order: a day, a part of the day, a time of the day, a distance, a repetition, or an ISO 8601 time.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, TypeVar

from phylactery_agent.rules.spelling import chat_expression, unaccented
from phylactery_agent.timeparse.places import ABBREVIATIONS, PLACES, holds
from phylactery_agent.timeparse.recurrence import Rule, occurrences, to_local, to_us, zone
from phylactery_agent.timeparse.vocabulary import (
    AFTERNOON,
    MONTHS,
    ORDINALS,
    PART_TIMES,
    PART_WORDS,
    PARTS,
    UNITS,
    WEEKDAYS,
    fold,
    minutes_of,
    number_of,
    word,
)

T = TypeVar("T")
DEFAULT_TIME: Final = time(9)
"""The default time of a day given without a time."""
_MINUTES: Final = {"minute": 1, "hour": 60}
_MAX_DISTANCE: Final = 10_000
_FARTHEST: Final = timedelta(days=3_660)
_NOON: Final = 12
_DAWN: Final = 6
"""Before this hour, "at night" may mean two times of a day."""
_SHORTEST_MONTH: Final = 28
_COMPILED: Final = tuple((kind, chat_expression(r"(?i)^(?:" + part + r")(?:,?\s+|$)")) for kind, part in PARTS)


_ALONE: Final = frozenset({"distance", "exact"})
"""Kinds of part that replace all of a time."""
_HALF_OF_DAY: Final = re.compile(r"(?i)\s*(?:(?:d|de|por)\s+la\s+|in\s+the\s+)\w+$|\s*at\s+night$|\s*[ap]\.?\s?m\.?$")


class WhenError(ValueError):
    """Error for words that are not one time to come.

    code is TIME_NOT_UNDERSTOOD, TIME_PAST, TIME_HALF_UNSAID if it is not said which half of the day is meant, or
    DAY_NOT_IN_ALL_MONTHS.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class When:
    """A moment in microseconds since the epoch, its repetition, and the IANA name of the zone its words name."""

    due_us: int
    rule: Rule | None = None
    zone: str = ""


@dataclass(frozen=True, slots=True)
class _Said:
    """The parts parsed so far."""

    day: Mapping[str, str] | None = None
    part: Mapping[str, str] | None = None
    clock: Mapping[str, str] | None = None
    distance: Mapping[str, str] | None = None
    every: Mapping[str, str] | None = None
    exact: Mapping[str, str] | None = None
    zone: Mapping[str, str] | None = None


def resolve(text: str, *, where: tzinfo, now_us: int, rule: Rule | None = None) -> When:
    """Return the time a text means, relative to a moment in a zone; the repetition is rule or the text's own.

    A zone that the text names counts instead of the given one. Raise WhenError.
    """
    said = _read(tidy(text))
    if said.every is not None:
        if rule is not None:
            raise _not_understood("it says twice how it repeats")
        rule = _rule(said.every)
    named = _zone(said)
    where = zone(named) if named else where
    due = _due(said, where, now_us, rule)
    if due <= now_us:
        raise WhenError("TIME_PAST", "that time is over")
    if due > now_us + _FARTHEST // timedelta(microseconds=1):
        raise _not_understood("it is more than ten years away")
    local = to_local(due, where)
    if "abbreviation" in (said.zone or {}) and not holds((said.zone or {})["abbreviation"], where, local):
        raise _not_understood("its zone has another time then; name the place")
    if rule is not None and rule.frequency == "MONTHLY" and local.day > _SHORTEST_MONTH:
        raise WhenError("DAY_NOT_IN_ALL_MONTHS", f"not every month has a day {local.day}")
    return When(due, _with_days(rule, local), named)


def _zone(said: _Said) -> str:
    if said.zone is None:
        return ""
    if said.distance is not None and not said.clock:
        raise _not_understood("a distance has no zone")
    if "place" in said.zone:
        return word(said.zone["place"], PLACES)
    return ABBREVIATIONS[said.zone["abbreviation"].casefold()]


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
    named = any(kind == "part" or groups.keys() & {"dayhalf", "ampm", "noon", "midnight"} for kind, groups, _ in said)
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
    raise _not_understood("write it as 2027-03-01 09:00, “tomorrow at 9 am” or “en 20 minutos”")


def _due(said: _Said, where: tzinfo, now_us: int, rule: Rule | None) -> int:
    now = to_local(now_us, where)
    if said.exact is not None:
        if any((said.day, said.part, said.distance)) or (said.clock and "isotime" in said.exact):
            raise _not_understood("an exact time stands alone")
        return _exact(said.exact, where, None if said.clock is None else _only(_clock(said)))
    if said.distance is not None:
        return _after(said, where, now_us)
    times = _clock(said)
    if said.clock and "midnight" in said.clock and (said.day or rule is not None):
        raise _not_understood("say midnight with its day: 2027-03-01 00:00")
    if rule is not None and said.day is None:
        return _first(rule, said, _only(times), where, now_us)
    if said.day is not None:
        found = [_on(said.day, at, now) for at in times]
        # "On Friday at 8" is a coming Friday's, but "today at 8" may have one time left.
        to_come = [moment for moment in found if to_us(moment, where) > now_us] or found
        near = min(moment.date() for moment in to_come)
        return to_us(_only([moment for moment in to_come if moment.date() == near]), where)
    today = [datetime.combine(now.date(), at) for at in times]
    to_come = [moment for moment in today if to_us(moment, where) > now_us]
    # "This evening" is always today; a time of the day that has passed is tomorrow's.
    if said.part or to_come:
        return to_us(_only(to_come or today), where)
    return to_us(_only([moment + timedelta(days=1) for moment in today]), where)


def _only(times: Sequence[T]) -> T:
    if len(times) > 1:
        raise WhenError("TIME_HALF_UNSAID", "it does not say which half of the day is meant: say am or pm")
    return times[0]


def _after(said: _Said, where: tzinfo, now_us: int) -> int:
    """Return the moment at a distance from now; one in hours is a duration whatever the clocks do."""
    if said.day or said.part:
        raise _not_understood("a distance stands alone, or with a time of the day")
    unit, many, more = _distance(said.distance or {})
    if unit in _MINUTES:
        if said.clock:
            raise _not_understood("a distance in hours has no time of the day")
        return now_us + round((many * _MINUTES[unit] + more) * 60_000_000)
    now = to_local(now_us, where)
    day = _moved(now.date(), unit, many)
    return to_us(datetime.combine(day, _only(_clock(said)) if said.clock else now.time()), where)


def _first(rule: Rule, said: _Said, at: time, where: tzinfo, now_us: int) -> int:
    """Return the first time of a rule without a given day."""
    now = to_local(now_us, where)
    start = datetime.combine(now.date(), at)
    every = said.every or {}
    if "monthday" in every:
        start = _month_day(now, int(every["monthday"]), at)
    elif "yearday" in every:
        start = _on({"dayofmonth": every["yearday"], "month": every["yearmonth"]}, at, now)
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


def _exact(groups: Mapping[str, str], where: tzinfo, clock: time | None) -> int:
    try:
        day = date.fromisoformat(groups["iso"])
        at = time.fromisoformat(groups["isotime"]) if "isotime" in groups else clock or DEFAULT_TIME
        offset = groups.get("offset", "")
        if not offset:
            return to_us(datetime.combine(day, at), where)
        moment = datetime.fromisoformat(f"{day}T{at.isoformat()}{offset.upper().replace('Z', '+00:00')}")
        return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    except (ValueError, OverflowError):
        raise _not_understood("there is no such day or time") from None


def _clock(said: _Said) -> list[time]:
    """Return the times of the day that the words may mean: two if they do not say which half of the day."""
    often = (said.every or {}).get("everypart", "")
    part = _part(said.part) or _part(None, often)
    if often and not said.clock:
        raise _not_understood("the hour that it repeats at is missing")
    if not said.clock:
        return [PART_TIMES[part] if part else DEFAULT_TIME]
    groups = said.clock
    if "noon" in groups:
        return [time(_NOON)]
    if "midnight" in groups:
        return [time(0)]
    hour, minute = number_of(groups["hour"]), int(groups.get("minute", "0"))
    minute, hour = _past(groups, minute, hour)
    half = groups.get("ampm", "").replace(".", "").replace(" ", "").lower()
    part = part or _part(None, groups.get("dayhalf", ""))
    written_24 = hour > _NOON or groups["hour"].startswith("0") or "day24" in groups
    try:
        at = time(hour, minute)
    except ValueError:
        raise _not_understood("there is no such time of the day") from None
    if half:
        if not 1 <= number_of(groups["hour"]) <= _NOON:
            raise _not_understood("there is no such time of the day")
        late = half == "pm"
    elif part:
        late = _is_late(part, hour)
    elif written_24:
        return [at]
    else:
        return [time(hour % _NOON, minute), time(hour % _NOON + _NOON, minute)]
    if written_24 and hour > _NOON and not late:
        raise _not_understood("the hour is not in that half of the day")
    return [at.replace(hour=hour % _NOON + (_NOON if late else 0))]


def _is_late(part: str, hour: int) -> bool:
    """Return True if an hour is past noon in a part of the day."""
    if hour == _NOON and part not in {"afternoon", "dawn"}:
        raise _not_understood("say noon, or midnight with its day: 2027-03-01 00:00")
    if part == "night" and hour < _DAWN:
        raise WhenError("TIME_HALF_UNSAID", "it does not say which half of the day is meant: say am or pm")
    return part in AFTERNOON


def _part(groups: Mapping[str, str] | None, said: str = "") -> str:
    """Return the part of the day, empty if none was given."""
    said = said or (groups or {}).get("part", "")
    return word(said, PART_WORDS) if said else ""


def _past(groups: Mapping[str, str], minute: int, hour: int) -> tuple[int, int]:
    """Return the minute and hour with the minutes said after or before the hour."""
    spoken = groups.get("by") or groups.get("pastby")
    if spoken is None:
        return minute, hour
    if minute:
        raise _not_understood("it says the minutes twice")
    past = minutes_of(spoken)
    if groups.get("plus") != "menos" and groups.get("side") != "to":
        return past, hour
    return (60 - past) % 60, (hour - 1 or _NOON) if past else hour


def _distance(groups: Mapping[str, str]) -> tuple[str, float, int]:
    """Return the unit of a distance, how many of it, and the minutes besides."""
    if "halfof" in groups:
        many = 0.25 if {"cuarto", "quarter"} & set(fold(groups["halfof"]).split()) else 0.5
    elif "many" in groups:
        many = float(number_of(groups["many"]))
    elif groups.get("andpart"):  # hora y media
        many = 1.0
    else:
        raise _not_understood("how many is missing")
    unit = word(groups["unit"], UNITS)
    if "andpart" in groups:
        many += minutes_of(groups["andpart"].removeprefix("a ")) / 60
    more = number_of(groups["more"]) if "more" in groups else 0
    if unit not in _MINUTES and (many != int(many) or more):
        raise _not_understood("half a day is said in hours")
    if more and unit != "hour":
        raise _not_understood("it says the minutes twice")
    if many > _MAX_DISTANCE:
        raise _not_understood("it is too far away")
    return unit, many, more


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
    if "ordinal" in groups or "monthend" in groups or groups.keys() in ({"month"}, {"nextmonth"}):
        return _in_month(groups, at, now)
    ahead = _days_ahead(groups, at, now)
    return _on_date(groups, at, now) if ahead is None else datetime.combine(now.date() + timedelta(days=ahead), at)


def _days_ahead(groups: Mapping[str, str], at: time, now: datetime) -> int | None:
    """Return in how many days a day is that is said from today; None for a date."""
    weeks = number_of(groups["weeks"]) if "weeks" in groups else 0
    for name, days in (("today", 0), ("aftertomorrow", 2), ("tomorrow", 1)):
        if name in groups:
            return days + 7 * weeks
    today = now.weekday()
    if "nextweek" in groups:
        return 7 - today + word(groups["nextweek"], WEEKDAYS)
    if "weekday" not in groups:
        return None
    ahead = (word(groups["weekday"], WEEKDAYS) - today) % 7
    counted = groups.keys() & {"next", "ahead", "weeks"}
    if ahead == 1 and fold(groups.get("next", "")) == "next":
        raise _not_understood("it is tomorrow or a week later")
    if ahead == 0 and (counted or datetime.combine(now.date(), at) <= now):
        ahead = 7
    return ahead + 7 * (weeks or number_of(groups.get("ahead", "1")) - 1)


def _on_date(groups: Mapping[str, str], at: time, now: datetime) -> datetime:
    """Return the local time on a date, the next one if its month or its year is missing."""
    try:
        if "onlyday" in groups:
            return _month_day(now, int(groups["onlyday"]), at)
        number = int(groups["monthnumber"]) if "monthnumber" in groups else word(groups["month"], MONTHS)
        if "year" in groups:
            return datetime.combine(date(int(groups["year"]), number, int(groups["dayofmonth"])), at)
        for year in range(now.year, now.year + 9):  # 29 February is at most eight years away
            if int(groups["dayofmonth"]) <= calendar.monthrange(year, number)[1]:
                moment = datetime.combine(date(year, number, int(groups["dayofmonth"])), at)
                if moment > now:
                    return moment
    except (ValueError, calendar.IllegalMonthError):
        pass
    raise _not_understood("there is no such day")


def _in_month(groups: Mapping[str, str], at: time, now: datetime) -> datetime:
    """Return the time on a weekday of a month, the first or the last, or on a month's last day."""
    month = now.year * 12 + now.month - 1 + ("nextmonth" in groups)
    if "month" in groups:
        month += (word(groups["month"], MONTHS) - now.month) % 12
    for later in range(month, month + 13, 12 if "month" in groups else 13):
        year, number = later // 12, later % 12 + 1
        last = calendar.monthrange(year, number)[1]
        if "ordinal" not in groups:
            day = last
        else:
            nth, weekday = word(groups["ordinal"], ORDINALS), word(groups["weekday"], WEEKDAYS)
            first = 1 + (weekday - date(year, number, 1).weekday()) % 7
            day = first + 7 * (nth - 1) if nth else first + (last - first) // 7 * 7
        moment = datetime.combine(date(year, number, day), at)
        if moment > now:
            return moment
    raise WhenError("TIME_PAST", "that time is over")


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


_RULES: Final = {
    "workdays": Rule("WEEKLY", days=(0, 1, 2, 3, 4)),
    "weekends": Rule("WEEKLY", days=(5, 6)),
    "everypart": Rule("DAILY"),
    "monthday": Rule("MONTHLY"),
    "yearday": Rule("YEARLY"),
}


def _rule(groups: Mapping[str, str]) -> Rule:
    """Return the parsed repetition."""
    for name, known in _RULES.items():
        if name in groups:
            return known
    if "otherday" in groups:
        return Rule("WEEKLY", 2, (word(groups["otherday"], WEEKDAYS),))
    if "everyday" in groups:
        names = fold(groups["everyday"]).replace(",", " ").split()
        days = {word(name, WEEKDAYS) for name in names if name not in {"y", "and", "los", "on"}}
        return Rule("WEEKLY", days=tuple(sorted(days)))
    unit = word(groups.get("everyunit", groups.get("adverb", "day")), UNITS)
    many = 2 if "other" in groups else number_of(groups.get("everymany", "1"))
    frequency = {"day": "DAILY", "week": "WEEKLY", "month": "MONTHLY", "year": "YEARLY"}[unit]
    if not 1 <= many <= 366:  # noqa: PLR2004 - what a rule takes
        raise _not_understood("it repeats too rarely")
    return Rule(frequency, many)
