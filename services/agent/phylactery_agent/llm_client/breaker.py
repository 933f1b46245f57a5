"""A circuit breaker: an endpoint that keeps failing is left alone, and tried again with one call at a time.

One turn alone does not open it: its words may be what the endpoint fails at, and then it is well for everybody else.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Ticket:
    """Leave to ask once. It is given back with what came of it, or abandoned."""

    era: int
    probe: bool


class Breaker:
    """Closed lets every call through, open none, half open one; time is monotonic, so no clock set back can hold it."""

    def __init__(self, failures: int, seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        """Open after so many failures in a row, of two turns at least, for so many seconds."""
        self._limit, self._seconds, self._monotonic = failures, seconds, monotonic
        self._failures, self._era = 0, 0
        self._turns: set[str] = set()
        self._open_until: float | None = None
        self._probing = False

    @property
    def state(self) -> BreakerState:
        """Return where it stands."""
        if self._open_until is None:
            return "closed"
        return "open" if self._monotonic() < self._open_until else "half_open"

    def admit(self) -> Ticket | None:
        """Return a ticket, None where the endpoint is to be left alone."""
        state = self.state
        if state == "closed":
            return Ticket(self._era, probe=False)
        if state == "open" or self._probing:
            return None
        self._probing = True
        return Ticket(self._era, probe=True)

    def succeeded(self, ticket: Ticket) -> bool:
        """Note an answer; say whether it closed the breaker. What was asked before it opened counts no more."""
        if ticket.era != self._era:
            return False
        self._failures = 0
        self._turns.clear()
        if not ticket.probe:
            return False
        self._enter(None)
        return True

    def failed(self, ticket: Ticket, hold_seconds: float = 0.0, *, turn: str = "") -> bool:
        """Note a failure, after which the endpoint wants to be left alone so long; say whether it opened.

        ``turn`` is whose question it was, "" one of its own.
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
        """Note that nobody waited for the answer: the next call may try instead."""
        if ticket.era == self._era and ticket.probe:
            self._probing = False

    def _enter(self, open_until: float | None) -> None:
        self._open_until, self._probing, self._failures = open_until, False, 0
        self._turns.clear()
        self._era += 1
