"""The life of an escalation: its states, and the one table of transitions. docs/handoff.md describes it.

Everything here is pure. Code that writes a state takes it from this module, with the escalation's row locked.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final


class EscalationStatus(StrEnum):
    """Where an escalation stands, by the words the database keeps; the contract's EscalationState has the same."""

    OPEN = "open"
    CLAIMED = "claimed"
    RELEASED = "released"
    CLOSED = "closed"


class EntryKind(StrEnum):
    """What an entry of the queue records; the contract's EscalationEntryKind has the same names."""

    OPENED = "opened"
    CLAIMED = "claimed"
    MESSAGE = "message"
    REPLY = "reply"
    NOTE = "note"
    REQUEUED = "requeued"
    EXPIRED = "expired"
    RELEASED = "released"
    CLOSED = "closed"
    REQUESTED = "requested"


_TRANSITIONS: Final[Mapping[EscalationStatus, tuple[EscalationStatus, ...]]] = {
    EscalationStatus.OPEN: (EscalationStatus.CLAIMED, EscalationStatus.CLOSED),
    # an expired claim goes back to the queue first, so that CLAIMED never follows CLAIMED
    EscalationStatus.CLAIMED: (EscalationStatus.OPEN, EscalationStatus.RELEASED),
    EscalationStatus.RELEASED: (),
    EscalationStatus.CLOSED: (),
}

ACTIVE: Final = tuple(status for status in EscalationStatus if _TRANSITIONS[status])
"""States of an escalation that has not ended. A thread has at most one such escalation."""


class EscalationTransitionError(RuntimeError):
    """The table has no such transition: an internal error, and nothing is written."""


def advance(status: EscalationStatus, to: EscalationStatus) -> EscalationStatus:
    """Return the state an escalation has next. Raise EscalationTransitionError if this one does not lead to it."""
    if to not in _TRANSITIONS[status]:
        raise EscalationTransitionError(f"an escalation that is {status} cannot become {to}")
    return to
