"""A clock that stands still until a test moves it."""

from __future__ import annotations

from phylactery_chassis.util.clock import MICROSECONDS


class FakeClock:
    """A clock that a test sets and advances."""

    def __init__(self, now_us: int = 1_790_000_000 * MICROSECONDS) -> None:
        self._now_us = now_us

    def now_us(self) -> int:
        """Return the time it was set to."""
        return self._now_us

    def advance(self, seconds: float) -> None:
        """Move the clock, backwards with a negative number."""
        self._now_us += round(seconds * MICROSECONDS)
