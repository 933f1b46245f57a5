"""Recurrence rules: a small subset of RFC 5545's RRULE in local time, so that nine o'clock stays nine o'clock.

A local time skipped by a clock change is interpreted with the old offset (02:30 becomes 03:30); an ambiguous one is the
first. A month without the day, and a year without 29 February, is skipped, as the RFC specifies.
"""

from __future__ import annotations

import calendar
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FREQUENCIES: Final = ("DAILY", "WEEKLY", "MONTHLY", "YEARLY")
MAX_INTERVAL: Final = 366
MAX_COUNT: Final = 1_000
MAX_RULE_CHARS: Final = 200
_LAST_YEAR: Final = 2200
"""The last year in which anything is due."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class RuleError(ValueError):
    """Error for an invalid rule or zone, with the fault."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A recurrence rule. days are weekdays from 0 (Monday), for WEEKLY; count and until may end it."""

    frequency: str
    interval: int = 1
    days: tuple[int, ...] = ()
    count: int = 0
    until: date | None = None

    def __str__(self) -> str:
        """Return the rule's canonical spelling."""
        parts = [f"FREQ={self.frequency}"]
        if self.interval != 1:
            parts.append(f"INTERVAL={self.interval}")
        if self.days:
            parts.append("BYDAY=" + ",".join(DAYS[day] for day in self.days))
        if self.count:
            parts.append(f"COUNT={self.count}")
        if self.until is not None:
            parts.append(f"UNTIL={self.until:%Y%m%d}")
        return ";".join(parts)


def parse_rule(text: str) -> Rule:
    """Parse FREQ=…;INTERVAL=…;BYDAY=…;COUNT=…;UNTIL=YYYYMMDD. Raise RuleError."""
    if len(text) > MAX_RULE_CHARS:
        raise RuleError(f"a rule has at most {MAX_RULE_CHARS} characters")
    parts: dict[str, str] = {}
    for part in text.upper().removeprefix("RRULE:").split(";"):
        name, mark, value = part.partition("=")
        if not mark or name in parts or name not in {"FREQ", "INTERVAL", "BYDAY", "COUNT", "UNTIL"}:
            raise RuleError("a rule is FREQ=…, and may have INTERVAL, BYDAY, COUNT and UNTIL, each once")
        parts[name] = value
    frequency = parts.get("FREQ", "")
    if frequency not in FREQUENCIES:
        raise RuleError(f"FREQ is one of {', '.join(FREQUENCIES)}")
    days = _days(parts.get("BYDAY", ""))
    if days and frequency != "WEEKLY":
        raise RuleError("BYDAY goes with FREQ=WEEKLY")
    if "COUNT" in parts and "UNTIL" in parts:
        raise RuleError("a rule has COUNT or UNTIL, not both")
    return Rule(
        frequency,
        _number(parts, "INTERVAL", MAX_INTERVAL) or 1,
        days,
        _number(parts, "COUNT", MAX_COUNT),
        _until(parts.get("UNTIL", "")),
    )


def _days(text: str) -> tuple[int, ...]:
    if not text:
        return ()
    names = text.split(",")
    if not set(names) <= set(DAYS):
        raise RuleError(f"BYDAY holds weekdays: {', '.join(DAYS)}")
    return tuple(sorted({DAYS.index(name) for name in names}))


def _number(parts: dict[str, str], name: str, most: int) -> int:
    """Return a number of the rule, 0 if it is absent."""
    if name not in parts:
        return 0
    text = parts[name]
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(most)) and 1 <= int(text) <= most):
        raise RuleError(f"{name} is a number from 1 to {most}")
    return int(text)


def _until(text: str) -> date | None:
    if not text:
        return None
    try:
        return datetime.strptime(text, "%Y%m%d").replace(tzinfo=UTC).date()
    except ValueError:
        raise RuleError("UNTIL is a day: YYYYMMDD") from None


@lru_cache(maxsize=64)
def zone(name: str) -> tzinfo:
    """Return the zone of an IANA name. Raise RuleError if it does not exist."""
    if name == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # a path, a folder or a missing name
        raise RuleError(f"{name[:64]!r} is not a time zone; name one as America/Lima or UTC") from None


def to_us(local: datetime, where: tzinfo) -> int:
    """Return a naive local time in microseconds since the epoch."""
    return (local.replace(tzinfo=where, fold=0).astimezone(UTC) - _EPOCH) // timedelta(microseconds=1)


def to_local(us: int, where: tzinfo) -> datetime:
    """Return the naive local time of a moment."""
    return (_EPOCH + timedelta(microseconds=us)).astimezone(where).replace(tzinfo=None, fold=0)


def occurrences(rule: Rule, start: datetime) -> Iterator[datetime]:
    """Yield the naive local times from start on, including start if it matches the rule."""
    given = 0
    for moment in _raw(rule, start):
        if moment < start:
            continue
        if moment.year > _LAST_YEAR or (rule.until is not None and moment.date() > rule.until):
            return
        yield moment
        given += 1
        if given == rule.count:
            return


def _raw(rule: Rule, start: datetime) -> Iterator[datetime]:
    step = rule.interval
    if rule.frequency == "DAILY":
        yield from _every(start, timedelta(days=step))
    elif rule.frequency == "WEEKLY":
        monday = start - timedelta(days=start.weekday())
        days = rule.days or (start.weekday(),)
        for week in _every(monday, timedelta(weeks=step)):
            yield from (week + timedelta(days=day) for day in days)
    else:
        months = step if rule.frequency == "MONTHLY" else 12 * step
        yield from _monthly(start, months)


def _every(start: datetime, step: timedelta) -> Iterator[datetime]:
    moment = start
    while moment.year <= _LAST_YEAR:
        yield moment
        moment += step


def _monthly(start: datetime, step: int) -> Iterator[datetime]:
    month = start.year * 12 + start.month - 1
    while month // 12 <= _LAST_YEAR:
        year, number = month // 12, month % 12 + 1
        if start.day <= calendar.monthrange(year, number)[1]:
            yield start.replace(year=year, month=number)
        month += step


@dataclass(frozen=True, slots=True)
class Next:
    """The rest of a repetition after a moment: the next due time, None for never, and how often it was due."""

    due_us: int | None
    passed: int


def next_after(repeat: str, start_us: int, time_zone: str, *, due_us: int, after_us: int) -> Next:
    """Return what follows after a moment, given the last due time due_us; an empty repeat means once.

    passed counts the occurrences from due_us to the moment, both inclusive. Raise RuleError.
    """
    if not repeat:
        return Next(None, 1)
    where, passed = zone(time_zone), 0
    for moment in occurrences(parse_rule(repeat), to_local(start_us, where)):
        us = to_us(moment, where)
        if us > max(after_us, due_us):
            return Next(us, max(passed, 1))
        passed += us >= due_us
    return Next(None, max(passed, 1))
