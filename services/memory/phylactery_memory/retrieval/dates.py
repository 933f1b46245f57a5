"""The day of a memory as words added to its text: people ask for "in May" and "en mayo"."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_ENGLISH = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_SPANISH = (
    "enero",
    "febrero",
    "marzo",
    "abril",
    "mayo",
    "junio",
    "julio",
    "agosto",
    "septiembre",
    "octubre",
    "noviembre",
    "diciembre",
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def day_words(time_us: int) -> str:
    """Return the UTC day, month name in both languages, and year of a time in microseconds since the epoch."""
    day = _EPOCH + timedelta(microseconds=time_us)
    return f"{day.day} {_ENGLISH[day.month - 1]} {_SPANISH[day.month - 1]} {day.year}"
