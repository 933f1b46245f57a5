"""Circuit breaker: a failing endpoint is not called for a while, and then probed with one call at a time.

A single turn cannot open it: the endpoint may fail only on that turn's content and be healthy for all others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """Permission for one call. The caller reports its result or abandons it."""

    era: int
    probe: bool


class Breaker:
    """A circuit breaker: closed admits every call, open none, half open one.

    Time is monotonic, so setting the clock back has no effect.
    """

    def __init__(self, failures: int, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Open after this many consecutive failures, from at least two turns, for this many seconds."""
        self._limit, self._seconds, self._monotonic = failures, seconds, monotonic
        self._failures, self._era = 0, 0
        self._turns: set[str] = set()
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        """Return the current state."""
        if self._open_until is None:
            return "closed"
        return "open" if self._monotonic() < self._open_until else "half_open"

    def admit(self) -> Ticket | None:
        """Return a ticket, or None if the endpoint must not be called."""
        state = self.state
        if state == "closed":
            return Ticket(self._era, probe=False)
        if state == "open" or self._probing:
            return None
        self._probing = True
        return Ticket(self._era, probe=True)

    def succeeded(self, ticket: Ticket) -> bool:
        """Record an answer; return True if it closed the breaker. A request sent before it opened no longer counts."""
        if ticket.era != self._era:
            return False
        self._failures = 0
        self._turns.clear()
        if not ticket.probe:
            return False
        self._enter(None)
        return True

    def failed(self, ticket: Ticket, hold_seconds: float = 0.0, *, turn: str = "") -> bool:
        """Record a failure and the endpoint's requested pause; return True if the breaker opened.

        ``turn`` is the turn that made the request, "" for a request without a turn, which counts separately.
        """
        if ticket.era != self._era:
            return False
        self._failures += 1
        self._turns.add(turn or f"#{self._failures}")
        few = self._failures < self._limit or len(self._turns) < min(2, self._limit)
        if not ticket.probe and not hold_seconds and few:
            return False
        self._enter(self._monotonic() + max(hold_seconds, self._seconds if not hold_seconds or ticket.probe else 0.0))
        return True

    def abandoned(self, ticket: Ticket) -> None:
        """Record that the caller stopped waiting for the answer: the next call may try instead."""
        if ticket.era == self._era and ticket.probe:
            self._probing = False

    def _enter(self, open_until: float | None) -> None:
        self._open_until, self._probing, self._failures = open_until, False, 0
        self._turns.clear()
        self._era += 1
