"""Times of day: 17:30, a las cinco y media de la tarde, half past five, at noon."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import time, timedelta
from functools import cache
from typing import Final

from phylactery_forms.values.dates import NUMBERS, UNITS
from phylactery_forms.values.message import Message, alternatives, filler, groups, known, words
from phylactery_forms.values.model import Context, Found, Language, Options, Problem, TimeOptions

_HOUR_WORDS: Final = {
    word: value for word, value in NUMBERS.items() if 0 < value <= 12 and word not in words("no_day_words")
}
_MINUTE_WORDS: Final[Mapping[str, int]] = {
    **{word: value for word, value in NUMBERS.items() if 0 < value < 60 and word not in words("no_day_words")},
    **{word: int(minutes) for minutes, some in groups("minute_words").items() for word in some},
}
_PARTS: Final = {word: part for part, some in groups("day_parts").items() for word in some}
_NOONS: Final[Mapping[str, int]] = {
    **{word: int(hour) for word, hour in known("noon").items()},
    **{word: int(hour) for hour, some in groups("more_noons").items() for word in some},
}
_AFTERNOON: Final = frozenset({"afternoon", "evening", "night", "pm"})
_DIGITS: Final = r"\d{1,2}(?!\d)"
_HOUR: Final = rf"(?P<hour>{_DIGITS}|{alternatives(_HOUR_WORDS)})(?![^\W_])"
_HOUR_H: Final = rf"(?P<hour>{_DIGITS}|{alternatives(_HOUR_WORDS)})"
_MINUTE: Final = rf"(?P<minute>{_DIGITS}|{alternatives(_MINUTE_WORDS)})(?:\s+(?:minutos|minutes|min|mins))?"
_MERIDIEM: Final = r"\.?(?P<meridiem>[ap]\.?\s?m\b\.?|(?<=\d)[ap]\b)"
_PART: Final = (
    rf"(?:(?:(?:de|por|en)\s+la|del|in\s+the|at|this|in|tomorrow|esta)\s+)?(?P<part>{alternatives(_PARTS)})(?![^\W_])"
)
_PART_FIRST: Final = (
    rf"(?:(?:in|at|this|esta|en|por)\s+)?(?:(?:the|la|el)\s+)?"
    rf"(?P<part>(?<=\bla\s)manana|{alternatives(word for word in _PARTS if word not in words('near_mornings'))})"
)
"""A part of the day before its hour: in the evening 5:30. Spanish "mañana" alone is the next day."""
_TAIL: Final = (
    rf"(?:\s*(?:en\s+punto|o'?\s?clock|sharp|h|hs|hrs|horas|hours)(?![^\W_]))?(?:\s*(?:{_MERIDIEM}|,?\s{_PART}))?"
)
_LEAD: Final = rf"(?:{alternatives(words('hour_leads'))})"
_SIDE: Final = r"(?P<side>y|menos|con|past|after|to|till|before)"
_OPEN: Final = r"(?<![\w/.,:$€-])"
_CLOSE: Final = r"(?![\w/%]|[.,:-]\d)"
_MINUTES: Final = alternatives(word for word, value in _MINUTE_WORDS.items() if value >= 10)
_SPOKEN_MINUTE: Final = rf"(?:\s+(?P<minute>\d{{2}}|{_MINUTES})(?![^\W_]))?"
_NEXT_WORD: Final = re.compile(r"\s+([^\W_]+)")
_NOUNS: Final = frozenset((*groups("filler")["time"], *_PARTS))
_MOST: Final = 8
_NOON: Final = 12
_HOURS: Final = 24


def _number(text: str, table: Mapping[str, int]) -> int:
    return int(text) if text.isdigit() else table[" ".join(text.split())]


def _article(match: re.Match[str]) -> bool:
    """Return True for "una" before what it is the article of: una cita, una tarde; not for "la una", "una y media"."""
    led = match.start() != match.start("hour")
    if led or match["hour"] not in words("one_words"):
        return False
    behind = _NEXT_WORD.match(match.string, match.end("hour"))
    return behind is not None and behind[1] in _NOUNS


def _clock(match: re.Match[str], options: TimeOptions, _: Context) -> time | str | None:
    if _article(match):
        return None
    named = match.groupdict()
    hour = _number(match["hour"], _HOUR_WORDS)
    minute = _number(named["minute"], _MINUTE_WORDS) if named.get("minute") else 0
    if named.get("side") == "to" and _is_range(match, minute):
        return "not_one_time"
    if named.get("side") in {"menos", "to", "till", "before"}:
        if not 0 < minute < 60 or not 0 < hour <= _HOURS:
            return "no_such_time"
        hour, minute = (hour - 1) or (_NOON if hour <= _NOON else 0), 60 - minute
    digital = named.get("digital") is not None
    exact = digital and (match["hour"].startswith("0") or named.get("seconds") is not None)
    return _of_day(hour, minute, _part_of(named), options, exact=exact)


def _is_range(match: re.Match[str], minute: int) -> bool:
    """Return True if "to" is between two hours, not between minutes and an hour: 2 to 4 pm; not ten to four."""
    return 0 < minute <= _NOON and (match[0].startswith("from") or minute not in {5, 10})


def _part_of(named: Mapping[str, str | None]) -> str:
    meridiem = (named.get("meridiem") or "").replace(".", "").replace(" ", "")
    part = named.get("part")
    if meridiem:
        return f"{meridiem[0]}m"
    return _PARTS[" ".join(part.split())] if part else ""


def _of_day(hour: int, minute: int, part: str, options: TimeOptions, *, exact: bool) -> time | str:
    """Return a time of the day, or the code of a problem; bounds decide where nothing was said."""
    if not 0 <= minute < 60 or not 0 <= hour <= _HOURS or (hour == _HOURS and minute):
        return "no_such_time"
    hour %= _HOURS
    if part and 0 < hour <= _NOON:
        late = part in _AFTERNOON
        if part == "night" and (hour == _NOON or hour < 5):
            return time(hour % _NOON, minute)
        if hour == _NOON:
            return time(_NOON if late or part == "noon" else 0 if part in {"am", "dawn"} else _NOON, minute)
        if part == "noon":
            late = hour < 5
        return time(hour + _NOON if late else hour, minute)
    if part == "am" and hour > _NOON:
        return "no_such_time"
    if exact or hour >= _NOON or hour == 0:
        return time(hour, minute)
    both = [one for one in (time(hour, minute), time(hour + _NOON, minute)) if _within(one, options)]
    return both[0] if len(both) == 1 and (options.earliest or options.latest) else "ambiguous_time"


def _within(one: time, options: TimeOptions) -> bool:
    return (options.earliest is None or one >= options.earliest) and (options.latest is None or one <= options.latest)


def _noon(match: re.Match[str], _: TimeOptions, __: Context) -> time | str | None:
    return time(_NOONS[" ".join(match["noon"].split())])


def _later(match: re.Match[str], _: TimeOptions, context: Context) -> time | str | None:
    text = match["many"]
    many = (
        0.5
        if text in words("half_words") | {"half an", "half a"}
        else (float(text) if text.isdigit() else float(NUMBERS.get(text, 1)))
    )
    many += 0.5 if match["half"] else 0
    minutes = many * (60 if UNITS.get(match["unit"]) == "h" else 1)
    moment = context.now + timedelta(minutes=minutes)
    return moment.time().replace(second=0, microsecond=0, tzinfo=None)


def _now(_: re.Match[str], __: TimeOptions, context: Context) -> time | str | None:
    return context.now.time().replace(second=0, microsecond=0, tzinfo=None)


def _vague(_: re.Match[str], __: TimeOptions, ___: Context) -> time | str | None:
    return "not_one_time"


def _before(match: re.Match[str], options: TimeOptions, _: Context) -> time | str | None:
    hour, minute = _number(match["hour"], _HOUR_WORDS), _number(match["minute"], _MINUTE_WORDS)
    if not 0 < hour <= _HOURS or not 0 < minute < 60:
        return "no_such_time"
    return _of_day((hour - 1) or _NOON, 60 - minute, _part_of(match.groupdict()), options, exact=False)


def _half(match: re.Match[str], options: TimeOptions, _: Context) -> time | str | None:
    return _of_day(_number(match["hour"], _HOUR_WORDS), 30, _part_of(match.groupdict()), options, exact=False)


_Reader = Callable[[re.Match[str], TimeOptions, Context], "time | str | None"]
_MANY: Final = rf"(?P<many>\d{{1,4}}|half\s+an?|media|{alternatives({*NUMBERS, *words('one_words')})})"
_SHORT: Final = {word: unit for word, unit in UNITS.items() if unit in {"m", "h"}}
_NOTATIONS: Final[tuple[tuple[str, _Reader], ...]] = (
    (
        (rf"{_OPEN}(?:en|in|dentro\s+de)\s+{_MANY}\s+"
        rf"(?P<unit>{alternatives(_SHORT)})(?![^\W_])(?P<half>\s+y\s+media|\s+and\s+a\s+half)?"),
        _later,
    ),
    (rf"{_OPEN}{_PART_FIRST}\s+(?:{_LEAD}\s+)?{_HOUR}(?:\s?[:h.]\s?(?P<minute>\d{{2}})(?!\d))?{_CLOSE}", _clock),
    (
        (rf"{_OPEN}(?:{_LEAD}\s+)?(?P<hour>\d{{1,2}})(?P<digital>\s?[:h]\s?|\.)(?P<minute>\d{{2}})"
        rf"(?P<seconds>[:.]\d{{2}}(?:\.\d+)?)?(?!\d){_TAIL}(?![\w/]|[.,:-]\d)"),
        _clock,
    ),
    (rf"{_OPEN}(?:{_LEAD}\s+)?{_MINUTE}\s+(?P<side>past|after|to|till|before)\s+{_HOUR}{_TAIL}", _clock),
    (rf"{_OPEN}{_MINUTE}\s+(?P<to>para|pa)\s+las?\s+{_HOUR}{_TAIL}", _before),
    (rf"{_OPEN}(?:{_LEAD}\s+)?{_HOUR}\s+(?P<side>y|menos|con)\s+{_MINUTE}(?![^\W_]){_TAIL}", _clock),
    (
        (
            rf"{_OPEN}(?:{_LEAD}\s+)?{_HOUR_H}\s*(?:{_MERIDIEM}|{_PART})"
            rf"\s+(?P<side>y|menos)\s+{_MINUTE}(?![^\W_])"
        ),
        _clock,
    ),
    (rf"{_OPEN}half\s+{_HOUR}{_TAIL}", _half),
    (rf"{_OPEN}{_LEAD}\s+{_HOUR}{_CLOSE}{_SPOKEN_MINUTE}{_TAIL}", _clock),
    (rf"{_OPEN}{_HOUR_H}\s*{_MERIDIEM}", _clock),
    (
        (
            rf"{_OPEN}{_HOUR_H}\s*(?P<mark>h|hs|hrs|horas|o'?\s?clock|en\s+punto|sharp)(?![^\W_])"
            rf"(?:\s*(?:{_MERIDIEM}|{_PART}))?"
        ),
        _clock,
    ),
    (rf"{_OPEN}{_HOUR}{_SPOKEN_MINUTE}\s+{_PART}", _clock),
    (rf"{_OPEN}(?:al?\s+|at\s+)?(?P<noon>{alternatives(_NOONS)})(?![^\W_])", _noon),
    (rf"{_OPEN}(?:right\s+now|ahora(?:\s+mismo)?|now)(?![^\W_])", _now),
    (rf"{_OPEN}{alternatives(words('vague_times'))}(?![^\W_])", _vague),
)  # fmt: skip


@cache
def _notations() -> tuple[tuple[re.Pattern[str], _Reader], ...]:
    """Return them compiled when a form first asks for them."""
    return tuple((re.compile(expression), reader) for expression, reader in _NOTATIONS)


def find_time(options: Options, message: Message, context: Context) -> list[Found] | Problem:
    """Return the times of a message; a Problem where five may be morning or afternoon, and nothing decides it."""
    bounds = options if isinstance(options, TimeOptions) else TimeOptions()
    found, problems, spans = list[Found](), list[str](), list[tuple[int, int]]()
    for expression, reader in _notations():
        for match in expression.finditer(message.plain):
            start, end = match.span()
            if len(spans) >= _MOST or any(start < high and low < end for low, high in spans):
                continue
            read = reader(match, bounds, context)
            if read is None or (reader is _now and not message.is_whole(start, end, filler("time"))):
                continue
            spans.append((start, end))
            if isinstance(read, str):
                problems.append(read)
            else:
                found.append(message.found(read.strftime("%H:%M"), start, end, filler("time")))
    if not spans:
        for match in re.finditer(rf"{_OPEN}{_HOUR}{_CLOSE}", message.plain):
            if message.is_whole(*match.span(), filler("time")):
                read = _clock(match, bounds, context)
                if isinstance(read, str):
                    return Problem(read)
                if read is not None:
                    return [message.found(read.strftime("%H:%M"), *match.span(), filler("time"))]
    if found:
        return found
    return Problem(problems[0]) if problems else []


def check_time(options: Options, value: str, _: Context) -> str | Problem:
    """Return an ISO time, in minutes, within its bounds."""
    match = re.fullmatch(r"\s*([0-2]?\d):([0-5]\d)(?::[0-5]\d)?\s*", value)
    if match is None or int(match[1]) >= _HOURS:
        return Problem("not_a_time")
    found = time(int(match[1]), int(match[2]))
    if isinstance(options, TimeOptions):
        if options.earliest is not None and found < options.earliest:
            return Problem("too_early", {"earliest": options.earliest.strftime("%H:%M")})
        if options.latest is not None and found > options.latest:
            return Problem("too_late", {"latest": options.latest.strftime("%H:%M")})
    return found.strftime("%H:%M")


def show_time(value: str, language: Language) -> str:
    """Return a time as it is said in writing: 17:30, or 5:30 pm in English."""
    match = re.fullmatch(r"(\d{2}):(\d{2})", value)
    if match is None or language == "es":
        return value
    hour = int(match[1])
    return f"{hour % _NOON or _NOON}:{match[2]} {'pm' if hour >= _NOON else 'am'}"
