"""Time as a dependency: microseconds since the epoch, UTC."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """Tells the time."""

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        return time.time_ns() // 1_000


class MonotoneClock:
    """A clock that never goes back: set back, it stands still until the other has caught up."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._latest = clock, 0

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        self._latest = max(self._latest, self._clock.now_us())
        return self._latest


class FakeClock:
    """A clock that a test moves by hand."""

    def __init__(self, now_us: int = 1_790_000_000 * MICROSECONDS) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        """Return the time it was set to."""
        return self._now_us

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards with a negative number."""
        self._now_us += round(seconds * MICROSECONDS)


async def pause(until: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, at most so many seconds; None has no end.

    It never loses a cancellation, as wait_for of Python 3.11 does where the event is set at that very moment: a task
    that pauses again and again would then never end.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()
