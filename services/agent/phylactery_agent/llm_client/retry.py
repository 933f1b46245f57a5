"""Retry policy of an endpoint: its own Retry-After, otherwise exponential backoff with jitter."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

from phylactery_agent.llm_client.errors import ModelFault

_LONGEST_PAUSE = 8.0
LONGEST_HOLD = 300.0
"""Maximum pause in seconds that an endpoint can request."""


def retry_after(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return the requested pause in seconds, at least 0, or None if there is none that can be parsed.

    A date is compared with the endpoint's own Date header if present, because the two clocks may differ.
    """
    milliseconds, said = headers.get("retry-after-ms"), headers.get("retry-after")
    for text, unit in ((milliseconds, 0.001), (said, 1.0)):
        seconds = _number(text)
        if seconds is not None:
            return seconds * unit
    until = _date(said)
    if until is None:
        return None
    return max(0.0, (until - (_date(headers.get("date")) or now)).total_seconds())


def moment(seconds: float) -> datetime:
    """Return seconds since the epoch as a date; a value out of range gives the epoch."""
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return datetime.fromtimestamp(0, UTC)


def _number(text: str | None) -> float | None:
    try:
        seconds = float(text or "")
    except ValueError:
        return None
    return max(0.0, seconds) if math.isfinite(seconds) else None


def _date(text: str | None) -> datetime | None:
    try:
        date = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.tzinfo else date.replace(tzinfo=UTC)


class RetryPolicy:
    """The policy that decides how long to wait before an attempt, or that there is none."""

    def __init__(self, *, attempts: int, backoff_seconds: float, longest_wait: float, random: Random) -> None:
        """Allow this many attempts per endpoint; longest_wait limits the Retry-After that is waited for."""
        self._attempts, self._backoff, self._longest, self._random = attempts, backoff_seconds, longest_wait, random

    def pause(self, made: int, fault: ModelFault) -> float | None:
        """Return the seconds before the next attempt after made attempts, or None if there is none."""
        if not fault.retried or made >= self._attempts or self.hold(fault):
            return None
        wanted = min(self._backoff * 2.0 ** (made - 1), _LONGEST_PAUSE)
        jittered = wanted * (0.5 + 0.5 * self._random.random())
        return jittered if fault.retry_after is None else fault.retry_after + jittered * 0.1

    def hold(self, fault: ModelFault) -> float:
        """Return how long not to call the endpoint because its requested pause is longer than a caller waits."""
        if fault.retry_after is None or fault.retry_after <= self._longest:
            return 0.0
        return min(fault.retry_after, LONGEST_HOLD)
