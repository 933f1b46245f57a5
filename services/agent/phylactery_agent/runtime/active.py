"""How long a run is served: measured where it is served, kept in its row with every heartbeat and at every end."""

from __future__ import annotations

import time

from phylactery_chassis.util.clock import MICROSECONDS


class ActiveTimeError(Exception):
    """The run was served as long as one may be; no further node of it begins."""


class ActiveTime:
    """The active time of one run, counted on from what its row said when it was claimed.

    A process that dies loses what passed since its last heartbeat, and nothing before it.
    """

    def __init__(self, used_us: int, *, limit_seconds: float) -> None:
        self._used_us, self._limit_us = used_us, round(limit_seconds * MICROSECONDS)
        self._begun_ns = time.monotonic_ns()

    def now_us(self) -> int:
        """Answers how long the run was served until now, in microseconds."""
        return self._used_us + (time.monotonic_ns() - self._begun_ns) // 1_000

    def check(self) -> None:
        """Raises ActiveTimeError where the time is up."""
        if self.now_us() > self._limit_us:
            raise ActiveTimeError
