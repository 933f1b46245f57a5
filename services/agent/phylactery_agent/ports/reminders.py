"""Reminders as a tool sees them: what one person asked to be told later, in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class ReminderRefusedError(Exception):
    """The reminder was not written, or is none of the person's. Holds a stable reason and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class WantedReminder:
    """A reminder to be: when it is due first, in microseconds since the epoch, and how it comes again.

    repeat is empty for once, else a rule of phylactery_agent.timeparse; time_zone is the IANA name both are meant in.
    """

    text: str
    due_us: int
    repeat: str
    time_zone: str


@dataclass(frozen=True, slots=True)
class Reminder:
    """A reminder as it is kept; due_us is when it is due next, or was last where none is left."""

    reminder_id: str
    text: str
    due_us: int
    repeat: str
    time_zone: str
    state: str
    """active, done or cancelled."""


class Reminders(Protocol):
    """The reminders of one person, asked for in one turn. Raises Unavailable where the store fails."""

    async def asked_us(self) -> int:
        """Return when the person said what is being served: what "in 20 minutes" counts from."""
        ...

    @property
    def time_zone(self) -> str:
        """The IANA name times are meant in where none is said."""
        ...

    async def create(self, wanted: WantedReminder, *, key: str) -> Reminder:
        """Keep a reminder, once per key: the same key again answers the one that is there.

        Raise ReminderRefusedError with TOO_MANY_REMINDERS.
        """
        ...

    async def list(self, *, limit: int) -> Sequence[Reminder]:
        """Return the person's active reminders of all their threads, the next one first."""
        ...

    async def cancel(self, name: str, *, key: str) -> Reminder:
        """Cancel the one active reminder of that id or, where no id is it, of that text.

        The same key again answers the same reminder. Raise ReminderRefusedError with REMINDER_NOT_FOUND or
        REMINDER_AMBIGUOUS.
        """
        ...
