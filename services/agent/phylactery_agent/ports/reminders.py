"""The tools' interface to reminders: later messages that one person requested in one thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


class ReminderRefusedError(Exception):
    """Error for a reminder that was not stored or is not the person's. Holds a stable reason and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class WantedReminder:
    """A requested reminder: its first due time, in microseconds since the epoch, and its repetition.

    repeat is empty for a single reminder, else a rule of phylactery_agent.timeparse; time_zone is the IANA name for
    both.
    """

    text: str
    due_us: int
    repeat: str
    time_zone: str


@dataclass(frozen=True, slots=True)
class Reminder:
    """A stored reminder; due_us is the next due time, or the last one if none is left."""

    reminder_id: str
    text: str
    due_us: int
    repeat: str
    time_zone: str
    state: str
    """One of active, done or cancelled."""


class Reminders(Protocol):
    """The reminders of one person, used in one turn. Raises Unavailable if the store fails."""

    async def asked_us(self) -> int:
        """Return the time of the message being served, which "in 20 minutes" is relative to."""
        ...

    @property
    def time_zone(self) -> str:
        """Return the IANA name of the default time zone."""
        ...

    async def create(self, wanted: WantedReminder, *, key: str) -> Reminder:
        """Store a reminder, once per key: the same key again returns the existing one.

        Raise ReminderRefusedError with TOO_MANY_REMINDERS.
        """
        ...

    async def list(self, *, limit: int) -> Sequence[Reminder]:
        """Return the person's active reminders from all their threads, the next one first."""
        ...

    async def cancel(self, name: str, *, key: str) -> Reminder:
        """Cancel the one active reminder with that id or, if no id matches, with that text.

        The same key again returns the same reminder. Raise ReminderRefusedError with REMINDER_NOT_FOUND or
        REMINDER_AMBIGUOUS.
        """
        ...

    async def uncreate(self, created_key: str, *, key: str) -> Reminder:
        """Cancel the reminder that was created under a key; the same key again returns it.

        Raise ReminderRefusedError with REMINDER_NOT_FOUND, REMINDER_RANG if it has rung for the last time, or
        REMINDER_CANCELLED if it was cancelled since.
        """
        ...

    async def uncancel(self, cancelled_key: str, *, key: str) -> tuple[Sequence[Reminder], Sequence[Reminder]]:
        """Set again the reminders that were cancelled under a key; return these, and those whose time has passed.

        Raise ReminderRefusedError with TOO_MANY_REMINDERS: none was set again.
        """
        ...

    async def stands(self, reminder_id: str) -> str:
        """Return a reminder's state as it is stored now, or an empty string if there is none."""
        ...

    async def cancel_all(self, *, key: str) -> Sequence[Reminder]:
        """Cancel every active reminder and return them; the same key again returns the same ones."""
        ...
