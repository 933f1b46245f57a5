"""Time as a dependency: microseconds since the epoch, UTC."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import Protocol

MICROSECONDS = 1_000_000


class Clock(Protocol):
    """A source of the current time."""

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        return time.time_ns() // 1_000


class MonotoneClock:
    """A clock that never goes backwards: if the other is set back, it keeps its last value until that has caught up."""

    def __init__(self, clock: Clock) -> None:
        self._clock, self._latest = clock, 0

    def now_us(self) -> int:
        """Return microseconds since the epoch."""
        self._latest = max(self._latest, self._clock.now_us())
        return self._latest


async def pause(until: asyncio.Event, seconds: float | None) -> None:
    """Wait until the event is set, for at most ``seconds``; None means no limit.

    A cancellation is never lost. ``asyncio.wait_for`` of Python 3.11 loses one that arrives at the moment the event is
    set, so a task that pauses in a loop would never end.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await until.wait()
