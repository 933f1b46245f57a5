"""Time expressions as comparable features: an hour, a weekday, a day of a month, a duration until then.

Nothing here uses the clock or a time zone: a computed date is compared with the day on which the words were said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final

from phylactery_understanding.language.numbers import number_words, value_of
from phylactery_understanding.language.text import Kind, Token, fold, tokenize, written
from phylactery_understanding.language.vocabulary import word_map, word_set

Feature = tuple[object, ...]

_ONE: Final = word_set("one")
_HOUR_MARKS: Final = word_set("hour_marks")
_HOUR_ARTICLES: Final = word_set("hour_articles")
_HOUR_LEADS: Final = word_set("hour_leads")
_WEEKDAYS: Final = word_map("weekdays")
_MONTHS: Final = word_map("months")
_UNITS: Final = word_map("time_units")
_DAYS: Final = word_map("days_ahead")
_SLIPS: Final = word_set("tomorrow_slips")
_MORNING: Final = word_set("morning")
_EVENING: Final = word_set("evening")
_EVERY: Final = word_set("every")
_PERIODS: Final = word_map("frequencies")
_HALF: Final = word_set("half")
_QUARTER: Final = word_set("quarter")
_CLOCK_WORDS: Final = word_set("clock_minutes")
_CLOCK_LEADS: Final = word_set("clock_leads")
_NOON: Final = word_map("noon")
_FILL: Final = word_set("time_fillers")
_SPANS: Final = word_set("spans")
_COMING: Final = word_set("coming")
_NEXT: Final = word_set("coming_after")
_BY_THEMSELVES: Final = word_set("unread_times")
_OR: Final = word_set("or")
_WORKING: Final = word_set("working_days")
_ORDINAL_WORDS: Final = word_map("days_of_month")
_LENGTH: Final = re.compile(r"(\d{1,3})-([a-z]+)")
"""A duration in one word: 1-hour."""
_SPANISH_DAYS: Final = word_set("fortnight_days")
_FORTNIGHT: Final = 15
"""In Spanish fifteen days are two weeks."""
_ORDINAL_DAYS: Final = word_set("ordinal_weekdays")
_ARTICLES: Final = word_set("ordinal_articles")
_MEALS: Final = word_set("meals")
_WHEN: Final = word_set("time_prepositions")
_HOURS, _NOON_HOUR, _MINUTES, _DAYS_OF_MONTH, _MONTHS_OF_YEAR = 24, 12, 60, 31, 12
_WEEK: Final = 7

_TIMELY: Final = frozenset(
    {"pasado", "day", "fortnight", "quincena"}.union(
        map(fold, _SLIPS),
        (day + "s" for day in _WEEKDAYS),
        *(_WEEKDAYS, _MONTHS, _DAYS, _PERIODS, _EVERY, _MORNING, _EVENING, _NOON, _MEALS),
        *(_ORDINAL_WORDS, _CLOCK_WORDS, _HALF, _QUARTER, number_words()),
    )
)
"""The words without figures in which a time may begin: all others are passed over at once."""


@dataclass(frozen=True, slots=True)
class Times:
    """The times that words express, and the positions of the tokens that express them."""

    features: frozenset[Feature]
    places: frozenset[int]


def read_times(tokens: Sequence[Token]) -> Times:
    """Return every time that some tokens name."""
    features: set[Feature] = set()
    places: set[int] = set()
    place = 0
    while place < len(tokens):
        found, size = _at(tokens, place)
        if size:
            features.update(found)
            places.update(range(place, place + size))
        place += max(size, 1)
    if places:
        _fill(tokens, places)
    return Times(frozenset(features), frozenset(places))


def unread_time(tokens: Sequence[Token]) -> str:
    """Return the first words of a time that cannot be compared: this weekend, el mes que viene, or 6."""
    texts = [one.text for one in tokens]
    for at, one in enumerate(texts):
        before, after = texts[at - 1] if at else "", texts[at + 1 : at + 3]
        if one in _SPANS and (before in _COMING or after[:2] == ["que", "viene"] or not _NEXT.isdisjoint(after[:1])):
            return f"{before} {one}".strip()
        if one in _BY_THEMSELVES or (one == "pasado" and after[:1] not in ([], ["manana"]) and before != "el"):
            return one
        if one in _OR and after and tokens[at + 1].kind is Kind.NUMBER:
            return f"{one} {after[0]}"
    return ""


def times_of(text: str) -> Times:
    """Return the times in a text."""
    return read_times([one for one in tokenize(text) if one.kind is not Kind.BREAK])


def _fill(tokens: Sequence[Token], places: set[int]) -> None:
    """Add the small words between and before the words of a time: "on the 3rd of", "el … a las"."""
    for place in sorted(places):
        before = place - 1
        while before >= 0 and before not in places and (tokens[before].text in _FILL):
            places.add(before)
            before -= 1


def _at(tokens: Sequence[Token], place: int) -> tuple[Iterator[Feature] | Sequence[Feature], int]:
    word = tokens[place].text.rstrip(".")
    if word not in _TIMELY and word.isalpha():
        return [], 0
    after = tokens[place + 1].text.rstrip(".") if place + 1 < len(tokens) else ""
    before = tokens[place - 1].text if place else ""
    if word in {"pasado", "day"} and after in {"mañana", "manana", "after"}:
        size = 3 if word == "day" else 2
        return [("day", 2)], size if word == "pasado" or tokens[
            min(place + 2, len(tokens) - 1)
        ].text == "tomorrow" else 1
    if word in _PERIODS:
        return [("every", 1, _PERIODS[word])], 1
    if word in _EVERY and after:
        return _every(tokens, place)
    if written(tokens[place].raw) in _SLIPS:
        return [("day", 1)], 1
    if word in _DAYS and not (word == "manana" and before in {"la", "por"}):
        more: list[Feature] = [("part", "evening")] if word == "tonight" else []
        return [("day", _DAYS[word]), *more], 1
    named = _named(word, before, after)
    return _numbered(tokens, place, word, after, before) if named is None else (named, min(len(named), 1))


def _named(word: str, before: str, after: str) -> Sequence[Feature] | None:
    """Return the meaning of a word for a part of the day, a weekday or a month; None for any other."""
    if word == "manana" and before in {"la", "por"}:
        return [("part", "morning")]
    if word in _MEALS and before not in _WHEN:
        return []
    if word in _MORNING:
        return [("part", "morning")]
    if word in _EVENING:
        return [("part", "evening")]
    if word in _NOON:
        return [("hour", _NOON[word], 0, True)]
    singular = word.removesuffix("s")
    if word in _WEEKDAYS or singular in _WEEKDAYS:
        ordinal = word in _ORDINAL_DAYS and before in _ARTICLES
        return [] if ordinal else [("weekday", _WEEKDAYS.get(word, _WEEKDAYS.get(singular, 0)))]
    if word in _MONTHS and (before in {"of", "de", "del", ""} or _number(before) or _number(after)):
        return [("month", _MONTHS[word])]
    return None


def _every(tokens: Sequence[Token], place: int) -> tuple[Sequence[Feature], int]:
    at = place + 1
    while at < len(tokens) and tokens[at].text in {"the", "los", "las", "other"}:
        at += 1
    if at >= len(tokens):
        return [], 0
    count = value_of(tokens[at].text) or _number(tokens[at].text)
    if tokens[at - 1].text == "other":
        count, step = 2, 0
    else:
        step = 1 if count else 0
    unit = tokens[at + step].text if at + step < len(tokens) else ""
    if unit in _WORKING:
        return [("every", 1, "weekday")], at + step - place + 1
    if unit in _UNITS:
        fortnight = unit in _SPANISH_DAYS and count == _FORTNIGHT
        every = ("every", 2, "w") if fortnight else ("every", int(count or 1), _UNITS[unit])
        return [every], at + step - place + 1
    if unit.removesuffix("s") in _WEEKDAYS or unit in _WEEKDAYS:
        day = _WEEKDAYS.get(unit, _WEEKDAYS.get(unit.removesuffix("s"), 0))
        return [("every", int(count or 1), "w"), ("weekday", day)], at + step - place + 1
    return [], 0


def _number(word: str) -> int | None:
    digits = word.rstrip(".")
    for suffix in ("st", "nd", "rd", "th", "º", "o", "ª"):
        if digits.endswith(suffix) and digits[: -len(suffix)].isdigit():
            digits = digits[: -len(suffix)]
            break
    return int(digits) if digits.isdigit() and len(digits) <= 4 else None


def _numbered(  # noqa: C901 - one case for each notation of a time
    tokens: Sequence[Token], place: int, word: str, after: str, before: str
) -> tuple[Sequence[Feature], int]:
    day = _iso(word)
    if day is not None:
        return day, 1
    length = _LENGTH.fullmatch(word)
    if length is not None and length[2] in _UNITS:
        return [("after", int(length[1]), _UNITS[length[2]])], 2 if after == "long" else 1
    if word in _ORDINAL_WORDS:
        month = tokens[place + 2].text if after in {"of", "de"} and place + 2 < len(tokens) else after
        return ([("date", _ORDINAL_WORDS[word])], 1) if month in _MONTHS or before in _MONTHS else ([], 0)
    clock = _clock(word)
    if clock is not None:
        return [("hour", *clock, clock[0] >= _NOON_HOUR + 1 or clock[0] == 0)], 1
    spoken = _spoken_clock(tokens, place)
    if spoken is not None:
        return spoken
    if word in _HALF or word in _QUARTER:
        size = 3 if after in {"an", "a"} and place + 2 < len(tokens) and tokens[place + 2].text in _UNITS else 2
        unit = tokens[place + size - 1].text if place + size - 1 < len(tokens) else ""
        if _UNITS.get(unit) == "h":
            return [("after", 30 if word in _HALF else 15, "m")], size
        return [], 0
    if word in {"fortnight", "quincena"}:
        return [("after", 2, "w")], 1
    said = value_of(word)
    number = _number(word) if said is None else (int(said) if said == int(said) else None)
    if number is None:
        return [], 0
    if after in _UNITS and before not in {"las", "la"}:
        unit = _UNITS[after]
        rest = [one.text for one in tokens[place + 2 : place + 5]]
        if unit == "h" and rest[:2] in (["y", "media"], ["and", "half"]):
            return [("after", number * 60 + 30, "m")], 4
        if rest[:1] == ["antes"] or rest[:1] == ["before"]:
            return [], 0
        return [("after", number, unit)], 3 if rest[:1] == ["long"] else 2
    if after in _MONTHS or (after in {"of", "de"} and place + 2 < len(tokens) and tokens[place + 2].text in _MONTHS):
        return [("date", number)], 1
    dated = place > 1 and (tokens[place - 2].text in {"of", "de", "del"} or _number(tokens[place - 2].text) is not None)
    if before in _MONTHS and 1 <= number <= _DAYS_OF_MONTH and not dated and after not in {"to", "a", "-", "am", "pm"}:
        return [("date", number)], 1
    if word != str(number) and said is None:
        return [("date", number)], 1
    if not 0 <= number <= _HOURS or (said is not None and word in _ONE and before not in {"la", "at"}):
        return [], 0
    if before in _MONTHS and after in {"to", "-", "–"}:
        return [("hour", number, 0, number > _NOON_HOUR)], 1
    if after in _MORNING | _EVENING or before in _HOUR_ARTICLES or after in _HOUR_MARKS:
        minutes, size = _minutes(tokens, place)
        return [_hour(number, minutes)], size
    if before in {"dia", "the", "el"} and 1 <= number <= _DAYS_OF_MONTH and after not in {"de", "of", "in"}:
        return [("date", number)], 1
    if before in _HOUR_LEADS:
        minutes, size = _minutes(tokens, place)
        return [_hour(number, minutes)], size
    return [], 0


def _hour(hour: int, minutes: int) -> Feature:
    """Return an hour, and minutes past it or, if negative, to it."""
    past = (hour * _MINUTES + minutes) % (_HOURS * _MINUTES)
    spoken = past // _MINUTES or (_NOON_HOUR if 0 < hour <= _NOON_HOUR else 0)
    return ("hour", spoken, past % _MINUTES, hour > _NOON_HOUR)


def _minutes(tokens: Sequence[Token], place: int) -> tuple[int, int]:
    """Return the minutes said after an hour, and the number of their tokens: seis y media, siete menos cuarto."""
    rest = [one.text for one in tokens[place + 1 : place + 3]]
    if len(rest) > 1 and rest[0] in {"y", "menos"}:
        minutes = _part_of_hour(rest[1])
        if minutes is not None:
            return (minutes if rest[0] == "y" else -minutes), 3
    return 0, 1


def _part_of_hour(word: str) -> int | None:
    if word in _HALF | _QUARTER:
        return 30 if word in _HALF else 15
    said = value_of(word)
    return int(said) if said is not None and 0 < said < _MINUTES else None


def _spoken_clock(tokens: Sequence[Token], place: int) -> tuple[Sequence[Feature], int] | None:
    """Return a time of day that begins with its minutes: quarter to seven, ten past 4, half twelve."""
    texts = [one.text for one in tokens[place : place + 4]]
    minutes, size = _part_of_hour(texts[0]), 1
    if texts[0] not in _CLOCK_WORDS or minutes is None or (place and tokens[place - 1].text not in _CLOCK_LEADS):
        return None
    if texts[size : size + 1] in (["minutes"], ["min"]):
        size += 1
    side = texts[size] if len(texts) > size else ""
    if side in {"past", "to"}:
        size += 1
    elif texts[0] != "half":
        return None
    word = texts[size] if len(texts) > size else ""
    hour = value_of(word) or _number(word)
    if hour is None or hour != int(hour) or not 0 < hour <= _NOON_HOUR:
        return None
    return [_hour(int(hour), -minutes if side == "to" else minutes)], size + 1


def _clock(word: str) -> tuple[int, int] | None:
    part = ""
    for suffix in ("am", "pm", "hs", "h"):
        if word.endswith(suffix) and word[: -len(suffix)].replace(":", "").replace(".", "").replace("h", "").isdigit():
            part, word = suffix, word[: -len(suffix)]
            break
    hour, mark, minutes = word.replace("h", ":").replace(".", ":").partition(":")
    if (
        not hour.isdigit()
        or len(hour) > 2
        or (mark and not (minutes.isdigit() and len(minutes) == 2))
        or not (mark or part)
    ):
        return None
    if int(hour) > _HOURS or (minutes and int(minutes) >= _MINUTES):
        return None
    if part == "am" and int(hour) == _NOON_HOUR:
        return 0, int(minutes or 0)
    late = part == "pm" and int(hour) < _NOON_HOUR
    return int(hour) + (_NOON_HOUR if late else 0), int(minutes or 0)


def _iso(word: str) -> list[Feature] | None:
    day, _, rest = word.partition("t")
    parts = day.replace("/", "-").split("-")
    if len(parts) == 3 and all(part.isdigit() for part in parts) and len(parts[0]) == 4:
        try:
            when = date(int(parts[0]), int(parts[1]), int(parts[2]))
        except ValueError:
            return None
        found: list[Feature] = [("iso", when)]
        clock = _clock(rest[:5]) if rest else None
        if clock is not None:
            found.append(("hour", *clock, True))
        return found
    if (
        2 <= len(parts) <= 3
        and "/" in word
        and all(part.isdigit() for part in parts)
        and int(parts[1]) <= _MONTHS_OF_YEAR
    ):
        return [("date", int(parts[0])), ("month", int(parts[1]))]
    return None


def same_time(said: frozenset[Feature], call: frozenset[Feature], day: date | None) -> bool:
    """Return True if a call's times are those that were said; a missing one is a difference."""
    if not call:
        return False
    parts = {one[1] for one in said if one[0] == "part"}
    used: set[Feature] = set()
    for one in call:
        witness = [other for other in said if _says(other, one, parts, day)]
        if one[0] == "iso":
            witness = _witnesses(said, one[1], day)
        if one[0] == "part":
            unsaid = not parts and any(_is_in(other, str(one[1])) for other in said)
            witness = [one] if one[1] in parts or unsaid else []
        if (
            not witness
            and one == ("day", 0)
            and not any(other[0] in {"day", "weekday", "date", "iso"} for other in said)
        ):
            continue
        if not witness:
            return False
        used.update(witness)
    weak = {"part", "every"} if any(one[0] == "every" for one in call) else {"part"}
    implied = any(one[0] == "iso" for one in call)
    return all(
        one in used
        or one[0] in weak
        or (one == ("day", 0))
        or (implied and one[0] in {"weekday", "month", "date", "day"})
        for one in said
    )


def _says(said: Feature, call: Feature, parts: set[object], day: date | None) -> bool:
    if said == call:
        return True
    if said[0] == call[0] == "hour":
        return _same_hour(said, call, parts)
    if said[0] == "date" and call[0] == "date":
        return said[1] == call[1]
    if said[0] == "after" and call[0] == "after":
        return _seconds(said) == _seconds(call)
    if day is not None and {said[0], call[0]} == {"day", "weekday"}:
        ahead, weekday = (said[1], call[1]) if said[0] == "day" else (call[1], said[1])
        return isinstance(ahead, int) and (day + timedelta(ahead)).weekday() == weekday
    return False


def _seconds(one: Feature) -> int:
    size = {"m": 1, "h": 60, "d": 1_440, "w": 10_080, "M": 43_200, "y": 525_600}[str(one[2])]
    return int(str(one[1])) * size


def _same_hour(said: Feature, call: Feature, parts: set[object]) -> bool:
    if said[2] != call[2]:
        return False
    first, second = int(str(said[1])), int(str(call[1]))
    if first == second:
        return not (second < _NOON_HOUR and second > 0 and parts == {"evening"} and not said[3])
    if said[3] or abs(first - second) != _NOON_HOUR:
        return False
    late = max(first, second) == second
    return not (parts == {"morning"} and late)


def _is_in(said: Feature, part: str) -> bool:
    if said[0] != "hour":
        return False
    late = int(str(said[1])) >= _NOON_HOUR
    return late == (part == "evening") or not said[3]


def _witnesses(said: frozenset[Feature], wanted: object, day: date | None) -> list[Feature]:
    """Return the expressions that can mean the wanted date; ``day`` is when they were said."""
    assert isinstance(wanted, date)
    found = [one for one in said if one[0] == "iso" and one[1] == wanted]
    dates = [one for one in said if one[0] == "date"]
    months = [one for one in said if one[0] == "month"]
    if dates and all(one[1] == wanted.day for one in dates[:1]) and all(one[1] == wanted.month for one in months[:1]):
        near = day is None or months or 0 <= (wanted - day).days <= _DAYS_OF_MONTH
        if near:
            found += [*dates, *months]
    if not dates:
        if day is not None:
            found += [one for one in said if one[0] == "day" and day + timedelta(int(str(one[1]))) == wanted]
        ahead = 0 if day is None else (wanted - day).days
        if 0 <= ahead <= 2 * _WEEK - 1 or (day is None):
            found += [one for one in said if one[0] == "weekday" and one[1] == wanted.weekday()]
    if not found and not any(one[0] in {"date", "day", "weekday", "iso"} for one in said) and day == wanted:
        found = [one for one in said if one[0] == "hour"]
    return found


def same_hour(said: Feature, other: Feature) -> bool:
    """Return True if two hours may be the same: 5, 17:00."""
    return _same_hour(said, other, set())


def same_day(said: frozenset[Feature], known: frozenset[Feature], day: date | None) -> bool:
    """Return True if every time that was said fits a listed item's times: cancel yoga on Wednesday."""
    dates = [one for one in known if one[0] == "iso"]
    hours = [one for one in known if one[0] == "hour"]
    for one in said:
        if one[0] == "part":
            continue
        if one[0] == "hour":
            if not any(_same_hour(one, other, set()) for other in hours):
                return False
        elif not any(one in _witnesses(frozenset({one}), other[1], day) for other in dates) and one not in known:
            return False
    return bool(said)
