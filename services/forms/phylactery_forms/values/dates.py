"""Dates, absolute and relative, as people say them in Spanish and English.

The agent's own times (reminders) are moments with a repetition; a field asks for one day, in the past as well as in the
future, so its grammar is another. Both take weekdays, months and units from the understanding library's lexicons.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from typing import Final

from phylactery_forms.values.message import Message, alternatives, filler, fold, groups, known, words
from phylactery_forms.values.model import Context, DateOptions, Found, Language, Options, Problem

WEEKDAYS: Final[Mapping[str, int]] = {
    **{word: int(day) for word, day in known("weekdays").items()},
    **{word: int(day) for day, some in groups("weekday_names").items() for word in some},
}
MONTHS: Final[Mapping[str, int]] = {
    **{word: int(month) for word, month in known("months").items()},
    **{word: int(month) for month, some in groups("month_names").items() for word in some},
}
NUMBERS: Final[Mapping[str, int]] = {
    **{word: int(value) for word, value in known("numbers").items() if float(value) == int(value)},
    **{word: int(value) for value, some in groups("more_numbers").items() for word in some},
}
UNITS: Final[Mapping[str, str]] = {
    **known("time_units"),
    **{w: u for u, ws in groups("more_units").items() for w in ws},
}
_AHEAD: Final[Mapping[str, int]] = {
    **{word: int(days) for word, days in known("days_ahead").items()},
    **{word: int(days) for days, some in groups("near_days").items() for word in some},
    **dict.fromkeys(map(fold, words("tomorrow_slips")), 1),
}
_TENS: Final = range(20, 40, 10)
_MONTHS_OF_YEAR: Final = 12
_WEEK: Final = 7
_MOST: Final = 12
_MONTH_FIRST: Final = frozenset({"US", "PH", "PR", "FM", "GU", "BZ"})
"""Regions that write the month before the day, in English."""
_CENTURY_AHEAD: Final = 20
"""Two digits are at most that many years ahead; what would be later is of the last century."""


def _days_of_month() -> dict[str, int]:
    """Return the day that each word or words mean: quince, treinta y uno, twenty-first."""
    single = {word: value for word, value in NUMBERS.items() if 0 < value <= 31}
    ordinal = {word: int(value) for word, value in known("days_of_month").items()}
    ordinal |= {word: int(v) for v, some in groups("option_ordinals").items() if int(v) > 0 for word in some}
    found = {**single, **ordinal}
    for tens, ten in [(word, value) for word, value in single.items() if value in _TENS]:
        for unit, one in (*single.items(), *ordinal.items()):
            if 0 < one < 10 and ten + one <= 31:
                found |= {f"{tens} {unit}": ten + one, f"{tens}-{unit}": ten + one, f"{tens} y {unit}": ten + one}
    return {word: value for word, value in found.items() if word not in words("no_day_words")}


_DAY_WORDS: Final = _days_of_month()
_W: Final = alternatives(WEEKDAYS) + r"\.?"
_M: Final = alternatives(MONTHS) + r"\.?"
_DAY: Final = rf"(?P<day>\d{{1,2}}(?!\d)(?:st|nd|rd|th|\.?[º°ª]|ro|er|o)?|{alternatives(_DAY_WORDS)})(?![^\W_])"
_NUMBER_WORD: Final = alternatives({*NUMBERS, "and", "y"})
_YEAR: Final = (
    r"(?P<year>\d{4}(?!\d)|'\d\d(?!\d)|\d\d(?![\d:.,]|\s*(?:h|am|pm|:))"
    rf"|{_NUMBER_WORD}(?:[\s-]+{_NUMBER_WORD}){{1,6}})"
)
_ON: Final = rf"(?:{_W}(?:\s*[,(-]\s*|\s+)(?:(?:el|the)\s+)?(?:(?:dia|day)\s+)?)?"
_OPEN: Final = r"(?<![\w/.,$€-])(?<!\d:)(?<![$€]\s)"
_CLOSE: Final = r"(?![\w/]|[.,:-]\d)"
_COUNT: Final = rf"(?:\d{{1,4}}|{alternatives({*NUMBERS, *words('one_words'), *words('few_words')})})"
_DISTANCE_UNITS: Final = {word: unit for word, unit in UNITS.items() if unit in {"d", "w", "f", "M", "y"}}
_AMOUNT: Final = rf"{_COUNT}\s+(?:of\s+|de\s+)?{alternatives(_DISTANCE_UNITS)}(?![^\W_])"
_DISTANCE: Final = rf"(?P<amounts>{_AMOUNT}(?:(?:,|\s+and|\s+y)?\s+{_AMOUNT}){{0,3}})"
_NEXT: Final = alternatives(words("next_words"))
_LAST: Final = alternatives(words("last_words"))
_THIS: Final = alternatives(words("this_words"))
_RECENT: Final = r"(?P<recent>(?:(?:este|this)\s+)?(?:pasado|past)(?:\s+el)?)"
_AFTER_NEXT: Final = r"(?:que\s+viene|que\s+entra|entrante|proxim[oa])"
_AFTER_LAST: Final = r"(?:pasad[oa]|ultim[oa]|anterior)"
_OF: Final = r"(?:\s+(?:de|del|of|in|en))?(?:\s+(?:la|el|the))?"
_NTH: Final = {word: int(nth) for nth, some in groups("option_ordinals").items() for word in some}


@dataclass(frozen=True, slots=True)
class _Day:
    """A day of a message with its span; a text is the code of a problem."""

    day: date | str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Now:
    """What a relative day depends on."""

    today: date
    past: bool
    month_first: bool

    def week(self, weekday: int, weeks: int) -> date:
        """Return a weekday of this week, or of one before or after it."""
        return self.today + timedelta(weekday - self.today.weekday() + _WEEK * weeks)

    def weekday(self, weekday: int) -> date:
        """Return the next such weekday, or the last one."""
        ahead = (weekday - self.today.weekday()) % _WEEK
        if self.past:
            return self.today - timedelta((_WEEK - ahead) % _WEEK or _WEEK)
        return self.today + timedelta(ahead or _WEEK)

    def year_of(self, month: int, day: int, weekday: int | None = None) -> date | str:
        """Return the nearest such day on the wanted side; with a weekday, the one that has it."""
        for away in range(9):  # 29 February is at most eight years away
            try:
                found = date(self.today.year + (-away if self.past else away), month, day)
            except ValueError:
                continue
            if found > self.today if self.past else found < self.today:
                continue
            if weekday is not None and found.weekday() != weekday:
                return "weekday_differs"
            return found
        return "no_such_day"

    def day_of_month(self, day: int, weekday: int | None = None) -> date | str:
        """Return the nearest day with that number on the wanted side; with a weekday, the nearest on any side."""
        if weekday is not None:
            days = (self._in_month(day, away) for away in range(-_MONTHS_OF_YEAR, _MONTHS_OF_YEAR + 1))
            some = [one for one in days if one is not None and one.weekday() == weekday]
            return min(some, key=lambda one: abs(one - self.today)) if some else "weekday_differs"
        for away in range(_MONTHS_OF_YEAR):
            found = self._in_month(day, -away if self.past else away)
            if found is not None and (found <= self.today if self.past else found >= self.today):
                return found
        return "no_such_day"

    def _in_month(self, day: int, away: int) -> date | None:
        """Return a day of a month before or after this one."""
        try:
            return moved(self.today.replace(day=1), "M", away).replace(day=day)
        except ValueError:
            return None

    def full_year(self, text: str) -> int | None:
        """Return a year of two or four digits or in words."""
        digits = text.lstrip("'")
        if digits.isdigit():
            year = int(digits)
            if len(digits) > 2:
                return year
            century = self.today.year // 100 * 100
            return century + year - (100 if century + year > self.today.year + _CENTURY_AHEAD else 0)
        return _spoken_year(re.split(r"[\s-]+", digits))


def _spoken_year(said: list[str]) -> int | None:
    """Return a year in words: dos mil dieciséis, mil novecientos noventa, twenty sixteen, nineteen ninety."""
    values = [NUMBERS[one] for one in said if one in NUMBERS]
    if len(values) != len([one for one in said if one not in {"and", "y"}]) or not values:
        return None
    if values[0] in {19, 20} and len(values) > 1 and values[1] != 1000 and 10 <= sum(values[1:]) < 100:
        return values[0] * 100 + sum(values[1:])
    total = part = 0
    for value in values:
        if value in {100, 1000}:
            total, part = total + max(part, 1) * value, 0
        else:
            part += value
    total += part
    return total if 1000 <= total <= 2200 else None


_DAYS_OF: Final = {"d": 1, "w": _WEEK, "f": 2 * _WEEK}


def moved(day: date, unit: str, many: int) -> date:
    """Return a day a number of units later; the last day of a shorter month. Raise ValueError beyond the calendar."""
    if unit in _DAYS_OF:
        try:
            return day + timedelta(many * _DAYS_OF[unit])
        except OverflowError:
            raise ValueError("beyond the calendar") from None
    month = day.year * 12 + day.month - 1 + many * (12 if unit == "y" else 1)
    year, number = month // 12, month % 12 + 1
    if not date.min.year <= year <= date.max.year:
        raise ValueError("beyond the calendar")
    return day.replace(year=year, month=number, day=min(day.day, calendar.monthrange(year, number)[1]))


# ---- the notations, the most specific first ----------------------------------


def _made(now: _Now, year: str | None, month: int, day: int, weekday: int | None) -> date | str | None:
    if not 1 <= month <= _MONTHS_OF_YEAR or not 1 <= day <= 31:
        return "no_such_day" if year else None
    full = now.full_year(year) if year else None
    if full is None:
        return now.year_of(month, day, weekday)
    try:
        found = date(full, month, day)
    except ValueError:
        return "no_such_day"
    return found


def _numeric(match: re.Match[str], now: _Now) -> date | str | None:
    first, second = int(match["first"]), int(match["second"])
    day, month = (second, first) if now.month_first else (first, second)
    if month > _MONTHS_OF_YEAR >= day:
        day, month = month, day
    return _made(now, match.groupdict().get("year"), month, day, None)


def _iso(match: re.Match[str], _: _Now) -> date | str | None:
    month = MONTHS[match["month"].rstrip(".")] if match["month"][0].isalpha() else int(match["month"])
    try:
        return date(int(match["year"]), month, int(match["day"]))
    except ValueError:
        return "no_such_day"


def _day_number(text: str) -> int:
    digits = re.match(r"\d+", text)
    return int(digits[0]) if digits else _DAY_WORDS[" ".join(text.split())]


def _written(match: re.Match[str], now: _Now) -> date | str | None:
    weekday = _weekday_before(match[0])
    return _made(now, match["year"], MONTHS[match["month"].rstrip(".")], _day_number(match["day"]), weekday)


_LEADING_WEEKDAY: Final = re.compile(rf"{_W}(?![^\W_])")


def _weekday_before(text: str) -> int | None:
    match = _LEADING_WEEKDAY.match(text)
    return WEEKDAYS[match[0].rstrip(".")] if match else None


def _ahead(match: re.Match[str], now: _Now) -> date | str | None:
    return now.today + timedelta(_AHEAD[" ".join(match["near"].split())])


_ONE_AMOUNT: Final = re.compile(rf"({_COUNT})\s+(?:of\s+|de\s+)?({alternatives(_DISTANCE_UNITS)})(?![^\W_])")


def _amounts(text: str) -> Iterator[tuple[str, int]]:
    """Yield the units of a distance and how many: "quince días" are counted, though some mean two weeks."""
    for count, unit in _ONE_AMOUNT.findall(text):
        many = int(count) if count.isdigit() else 3 if count in words("few_words") else NUMBERS.get(count, 1)
        yield _DISTANCE_UNITS[unit], many


def _far(match: re.Match[str], now: _Now) -> date | str | None:
    named = match.groupdict()
    return _at_distance(match["amounts"], now.today, back=bool(named.get("back") or named.get("ago")))


def _at_distance(amounts: str, day: date, *, back: bool) -> date | str:
    """Return a day some units before or after another."""
    try:
        for unit, many in sorted(_amounts(amounts), key=lambda one: "yMfwd".index(one[0])):
            day = moved(day, unit, -many if back else many)
    except ValueError:
        return "no_such_day"
    return day


def _weekday(match: re.Match[str], now: _Now) -> date | str | None:
    named = match.groupdict()
    weekday = WEEKDAYS[match["weekday"].rstrip(".")]
    for name, weeks in (("nextweek", 1), ("lastweek", -1), ("thisweek", 0)):
        if named.get(name):
            return now.week(weekday, weeks)
    if named.get("next") or named.get("coming"):
        return (
            now.week(weekday, 1)
            if now.week(weekday, 0) > now.today and named.get("next")
            else _Now(now.today, past=False, month_first=False).weekday(weekday)
        )
    if named.get("recent"):
        return _Now(now.today, past=True, month_first=False).weekday(weekday)
    if named.get("following"):
        return now.week(weekday, 1)
    if named.get("last") or named.get("gone"):
        return now.week(weekday, -1)
    if named.get("this"):
        return now.week(weekday, 0)
    return now.weekday(weekday)


def _nth(match: re.Match[str], now: _Now) -> date | str | None:
    nth, weekday = _NTH[match["nth"]], WEEKDAYS[match["weekday"].rstrip(".")]
    month = match.groupdict().get("month")
    if month:
        number = MONTHS[month.rstrip(".")]
        year = now.full_year(match["year"]) if match["year"] else None
        if year is None:
            year = now.today.year + ((number < now.today.month) if not now.past else -(number > now.today.month))
        first = date(year, number, 1)
    else:
        step = 1 if match["nextmonth"] else -1 if match["lastmonth"] else 0
        first = moved(now.today.replace(day=1), "M", step)
    days = [
        one
        for one in range(1, calendar.monthrange(first.year, first.month)[1] + 1)
        if first.replace(day=one).weekday() == weekday
    ]
    if nth > len(days):
        return "no_such_day"
    return first.replace(day=days[nth - 1 if nth > 0 else -1])


_MAY_FOLLOW: Final = words("after_a_day")


def _only_day(match: re.Match[str], now: _Now) -> date | str | None:
    day = _day_number(match["day"])
    behind = re.match(r"\s+([^\W\d_]+)", match.string[match.end() :])
    ordinal = match["day"][-1].isalpha() and match["day"] not in NUMBERS
    if ordinal and behind is not None and behind[1] not in _MAY_FOLLOW:  # the second option
        return None
    if not 1 <= day <= 31:
        return None
    named = match.groupdict()
    if named.get("thismonth") or named.get("nextmonth"):
        first = moved(now.today.replace(day=1), "M", 1 if named.get("nextmonth") else 0)
        try:
            return first.replace(day=day)
        except ValueError:
            return "no_such_day"
    return now.day_of_month(day, _weekday_before(match[0]))


def _step(match: re.Match[str], now: _Now) -> date | str | None:
    return now.today + timedelta(1 if match["next"] else -1 if match["last"] else 0)


def _vague(_: re.Match[str], __: _Now) -> date | str | None:
    return "not_one_day"


def _holiday(match: re.Match[str], now: _Now) -> date | str | None:
    month, day = (int(one) for one in _HOLIDAYS[" ".join(match["holiday"].split())].split("-"))
    return _made(now, match["year"], month, day, None)


_HOLIDAYS: Final = {word: str(day) for day, some in groups("holidays").items() for word in some}
_MONTH_SPAN: Final = (
    r"(?:(?P<thismonth>(?:este|this|the\s+current)\s+(?:mes|month))"
    r"|(?P<nextmonth>(?:proximo\s+mes|mes\s+(?:que\s+viene|proximo|siguiente)|next\s+month))"
    r"|(?P<lastmonth>(?:mes\s+(?:pasado|anterior)|ultimo\s+mes|pasado\s+mes|(?:last|previous|past)\s+month)))"
)
_OF_YEAR: Final = rf"(?:(?:\s*,\s*|\s+(?:de\s+|del\s+|of\s+|in\s+|-\s*)?|\s?[-/]\s?)(?:(?:el\s+)?ano\s+)?{_YEAR})?"
_Reader = Callable[[re.Match[str], _Now], "date | str | None"]
_WEEKS: Final = (
    r"(?:(?P<nextweek>(?:next\s+week|(?:la\s+)?semana\s+(?:que\s+viene|proxima|siguiente|entrante)|(?:la\s+)?proxima\s+semana))"
    r"|(?P<lastweek>(?:(?:last|previous|past)\s+week|(?:la\s+)?semana\s+(?:pasada|anterior)|(?:la\s+)?(?:ultima|pasada)\s+semana))"
    r"|(?P<thisweek>(?:this\s+week|esta\s+(?:misma\s+)?semana)))"
)
_NOTATIONS: Final[tuple[tuple[str, _Reader], ...]] = (
    (rf"{_OPEN}(?P<year>(?:19|20)\d{{2}})(?P<month>0\d|1[0-2])(?P<day>[0-2]\d|3[01])(?![\w-])", _iso),
    (rf"{_OPEN}(?P<year>(?:19|20)\d{{2}})\s(?P<month>0?\d|1[0-2])\s(?P<day>[0-2]?\d|3[01])(?![\w-]|\s\d)", _iso),
    (
        (
            rf"{_OPEN}{_ON}(?P<year>\d{{4}})\s?[-/.]\s?(?P<month>\d{{1,2}}|{_M})\s?[-/.]\s?(?P<day>\d{{1,2}})"
            r"(?![\d/-])"
        ),
        _iso,
    ),
    (
        (rf"{_OPEN}{_ON}(?P<first>\d{{1,2}})\s?(?P<mark>[-/.])\s?(?P<second>\d{{1,2}})\s?(?:(?P=mark)|,)\s?"
        r"(?P<year>\d{4}|\d{2})(?![\d/-]|[.,:]\d)"),
        _numeric,
    ),
    (
        (
            rf"{_OPEN}{_ON}(?:el\s+)?{_DAY}"
            rf"\s*(?:de\s+|of\s+|day\s+of\s+|del\s+mes\s+de\s+|[-/]\s?)?(?:the\s+)?(?P<month>{_M})(?![^\W_]){_OF_YEAR}"
        ),
        _written,
    ),
    (
        (
            rf"{_OPEN}{_ON}(?P<month>{_M})(?:\s+|\s?[-/,]\s?)(?:the\s+|el\s+|dia\s+)?{_DAY}"
            rf"(?!\s*[:h]\d|\s*(?:am|pm|de\s+{_M})\b){_OF_YEAR}"
        ),
        _written,
    ),
    (
        (
            rf"{_OPEN}(?P<first>\d{{1,2}})\s+(?:del|of\s+the|de)\s+(?P<second>\d{{1,2}})(?:\s+(?:del|de)"
            rf"\s+(?P<year>\d{{4}}))?{_CLOSE}"
        ),
        _numeric,
    ),
    (rf"{_OPEN}{_ON}(?P<first>\d{{1,2}})\s?/\s?(?P<second>\d{{1,2}}){_CLOSE}", _numeric),
    (
        (
            rf"(?<![\w])(?:el|on|dia|del|the|for)\s+(?P<first>\d{{1,2}})[.-](?P<second>\d{{1,2}}){_CLOSE}"
            r"(?!\s*(?:h|am|pm)\b)"
        ),
        _numeric,
    ),
    (
        (rf"{_OPEN}(?P<nth>{alternatives(_NTH)})\s+(?P<weekday>{_W}){_OF}\s+"
        rf"(?:{_MONTH_SPAN}|(?P<month>{_M})(?![^\W_]){_OF_YEAR})"),
        _nth,
    ),
    (rf"{_OPEN}(?P<holiday>{alternatives(_HOLIDAYS)})(?![^\W_]){_OF_YEAR}", _holiday),
    (rf"{_OPEN}(?P<back>hace(?:\s+ya)?)\s+{_DISTANCE}", _far),
    (
        (
            rf"{_OPEN}(?:in|en|dentro\s+de|de\s+aqui\s+a|within)\s+{_DISTANCE}"
            r"(?!\s+(?:ago|atras|antes|before|from|after|desde|despues\s+de|a\s+partir))"
        ),
        _far,
    ),
    (rf"{_OPEN}{_DISTANCE}\s+(?P<ago>ago|atras|antes(?!\s+de)|back|earlier)(?![^\W_])", _far),
    (
        (
            rf"{_OPEN}{_DISTANCE}\s+(?:from\s+(?:now|today)|a\s+partir\s+de\s+(?:ahora|hoy)"
            r"|hence|later|despues(?!\s+de)|mas\s+tarde)(?![^\W_])"
        ),
        _far,
    ),
    (rf"{_OPEN}(?<!la\s)(?<!por\s)(?P<near>{alternatives(_AHEAD)})(?![^\W_])", _ahead),
    (rf"{_OPEN}(?:on\s+|el\s+)?{_WEEKS}(?:\s+on)?(?:\s+el)?\s+(?P<weekday>{_W})(?![^\W_])", _weekday),
    (rf"{_OPEN}(?:(?P<this>{_THIS})\s+)?(?P<weekday>{_W}),?{_OF}\s+{_WEEKS}", _weekday),
    (rf"{_OPEN}{_ON}(?:el\s+)?(?:dia\s+|the\s+)?{_DAY}{_OF}\s+(?:{_MONTH_SPAN})", _only_day),
    (rf"{_OPEN}{_RECENT}\s+(?P<weekday>{_W})(?![^\W_])", _weekday),
    (rf"{_OPEN}(?:(?P<following>following)\s+(?P<weekday>{_W}))(?![^\W_])", _weekday),
    (rf"{_OPEN}(?P<weekday>{_W})\s+(?P<following>siguiente)(?![^\W_])", _weekday),
    (rf"{_OPEN}(?P<nth>{alternatives(_NTH)})\s+{_W}(?![^\W_])", _vague),
    (rf"{_OPEN}(?P<weekday>{_W})\s+(?:(?P<coming>{_AFTER_NEXT})|(?P<gone>{_AFTER_LAST}))(?![^\W_])", _weekday),
    (
        (
            rf"{_OPEN}(?:(?P<coming>(?:(?:this|the)\s+)?coming)|(?P<next>{_NEXT})|(?P<last>{_LAST})|(?P<this>{_THIS}))"
            rf"\s+(?P<weekday>{_W})(?![^\W_])"
            r"(?!\s+(?:\d|the\b))"
        ),
        _weekday,
    ),
    (
        (
            rf"{_OPEN}(?P<weekday>{_W}),?\s+(?:el\s+|the\s+)?(?:dia\s+)?{_DAY}{_CLOSE}"
            r"(?!\s*(?:h|am|pm|hs|hrs|horas)\b)"
        ),
        _only_day,
    ),
    (rf"{_OPEN}(?P<weekday>{_W})(?![^\W_])(?!\s+(?:{_M})\s)", _weekday),
    (
        (
            rf"(?<![\w])(?:el\s+dia|the|dia|el|on\s+the|on)\s+{_DAY}{_CLOSE}(?!\s*(?:h|am|pm|hs|hrs|horas)"
            r"\b|\s+(?:de\s+la|[^\W\d_]+\s+de\s+la)\s)"
        ),
        _only_day,
    ),
    (r"(?<![\w/.,:-])(?P<day>\d{1,2}(?:st|nd|rd|th))(?![^\W_])", _only_day),
    (
        (
            rf"{_OPEN}(?:el\s+|the\s+)?(?:(?P<next>{_NEXT}|siguiente)|(?P<last>{_LAST})|(?P<this>{_THIS}|my))"
            r"\s+(?:dia|day)(?![^\W_])"
        ),
        _step,
    ),
    (
        (
            rf"{_OPEN}(?:(?:{_NEXT}|{_LAST}|{_THIS}|fin\s+de)\s+{alternatives(words('long_spans'))}"
            rf"|{alternatives(words('long_spans'))}\s+(?:{_AFTER_NEXT}|{_AFTER_LAST})"
            rf"|{alternatives(words('vague_days'))})(?![^\W_])"
        ),
        _vague,
    ),
)  # fmt: skip


@cache
def _notations() -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    """Return them compiled, for a tenth of a second: not at every start of an agent, which may have no form."""
    return tuple((re.compile(expression), reader) for expression, reader in _NOTATIONS)


_FROM: Final = re.compile(
    rf"(?:\b(?:en|in|within|dentro\s+de)\s+)?{_DISTANCE}\s+"
    r"(?:from|after|desde|a\s+partir\s+de[l]?|despues\s+de[l]?|(?P<before>before|antes\s+de[l]?))\s+(?:el\s+|the\s+)?$"
)


def _shifted(plain: str, found: _Day) -> _Day:
    """Return a day moved by a distance that is said before it: two weeks before Christmas."""
    match = _FROM.search(plain, max(0, found.start - 80), found.start)
    if match is None or not isinstance(found.day, date):
        return found
    return _Day(_at_distance(match["amounts"], found.day, back=bool(match["before"])), match.start(), found.end)


def days_of(message: Message, options: Options, context: Context) -> list[_Day]:
    """Return the days of a message in the order of their places."""
    when = options.when if isinstance(options, DateOptions) else "any"
    first = context.language == "en" and context.region in _MONTH_FIRST
    now = _Now(context.now.date(), past=when == "past", month_first=first)
    found = list[_Day]()
    for expression, reader in _notations():
        for match in expression.finditer(message.plain):
            start, end = match.span()
            if len(found) >= _MOST or any(start < one.end and one.start < end for one in found):
                continue
            try:
                day = reader(match, now)
            except (ValueError, OverflowError):
                day = "no_such_day"
            if day is not None:
                found.append(_shifted(message.plain, _Day(day, start, end)))
    return sorted(found, key=lambda one: one.start)


_OF_AN_HOUR: Final = re.compile(r"(?<!\w)(?:las?|at)\s+$")
"""What a figure follows that is an hour and no day: a las 6, at 6."""


def find_date(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the dates of a message; a Problem where one does not exist or is more than one day."""
    days = days_of(message, options, context)
    found = [
        message.found(one.day.isoformat(), one.start, one.end, filler("date"))
        for one in days
        if isinstance(one.day, date)
    ]
    if found:
        return found
    bare = re.fullmatch(r"\D{0,12}?(\d{1,2})[\s.!]*", message.plain)
    hour = bare is not None and _OF_AN_HOUR.search(message.plain[: bare.start(1)]) is not None
    if not days and bare is not None and not hour and message.is_whole(bare.start(1), bare.end(1), filler("date")):
        now = _Now(
            context.now.date(), past=isinstance(options, DateOptions) and options.when == "past", month_first=False
        )
        day = now.day_of_month(int(bare[1]))
        if isinstance(day, date):
            return [message.found(day.isoformat(), bare.start(1), bare.end(1), filler("date"))]
    return next((Problem(one.day) for one in days if isinstance(one.day, str)), [])


def check_date(options: Options, value: str, context: Context) -> str | Problem:
    """Return an ISO date within its bounds."""
    try:
        day = date.fromisoformat(value.strip()) if re.fullmatch(r"\s*\d{4}-\d{2}-\d{2}\s*", value) else None
    except ValueError:
        return Problem("no_such_day")
    if day is None:
        return Problem("not_a_date")
    if isinstance(options, DateOptions):
        today = context.now.date()
        if options.when == "past" and day > today:
            return Problem("date_in_future")
        if options.when == "future" and day < today:
            return Problem("date_in_past")
        if options.earliest is not None and day < options.earliest:
            return Problem("too_early", {"earliest": options.earliest.isoformat()})
        if options.latest is not None and day > options.latest:
            return Problem("too_late", {"latest": options.latest.isoformat()})
    return day.isoformat()


_NAMES: Final[Mapping[Language, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    "es": (
        ("lunes", "martes", "miércoles", "jueves", "viernes", "sábado", "domingo"),
        (
            "enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre",
            "noviembre", "diciembre",
        ),
    ),
    "en": (
        ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
        (
            "January", "February", "March", "April", "May", "June", "July", "August", "September", "October",
            "November", "December",
        ),
    ),
}  # fmt: skip


def show_date(value: str, language: Language) -> str:
    """Return a date with its weekday: viernes 27 de noviembre de 2026."""
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return value
    weekdays, months = _NAMES[language]
    weekday, month = weekdays[day.weekday()], months[day.month - 1]
    if language == "es":
        return f"{weekday} {day.day} de {month} de {day.year}"
    return f"{weekday}, {day.day} {month} {day.year}"
