"""What a notice can be about, and one notice as the outbox keeps it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Event(StrEnum):
    """What people are told of; in a webhook it is the ``type``."""

    WAITING = "approval.waiting"
    REMINDER = "approval.reminder"
    DECIDED = "approval.decided"
    EXPIRED = "approval.expired"
    FROZEN = "calls.frozen"
    UNFROZEN = "calls.unfrozen"
    LIMIT = "limit.reached"
    IN_DOUBT = "effect.in_doubt"
    ACTIVATED = "bundle.activated"
    TEST = "test"


OF_APPROVALS = frozenset({Event.WAITING, Event.REMINDER, Event.DECIDED, Event.EXPIRED})
"""Events about one approval: what is told of them is read from the approval when the notice is sent."""


class NoticeState(StrEnum):
    """Where a notice is."""

    OPEN = "open"
    SENT = "sent"
    FAILED = "failed"
    """It was tried for as long as its sink says, and is not tried again."""
    DROPPED = "dropped"
    """There was nothing to tell any more, such as a reminder of what was answered."""


@dataclass(frozen=True, slots=True)
class NoticeRow:
    """One notice for one sink. Times are microseconds since the epoch, 0 if not set.

    ``id`` is the same for every sink and every try, so that a receiver can tell repetitions. ``once`` names what must
    not be told twice. ``about`` is the approval or execution; notices about the same one reach a sink in the order of
    ``due_us``. ``detail`` are names sealed under the data key, for what no other row holds.
    """

    id: str
    sink: str
    once: str
    event: str
    tenant: str
    subject: str
    about: str
    detail: bytes
    state: str
    due_us: int
    next_us: int
    lease_us: int
    claimed_by: str
    tries: int
    error: str
    create_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class SinkRow:
    """What is known of a sink: when it last took a notice, since when and why it takes none, and if it is disabled.

    ``fingerprint`` is that of its settings, so that changed settings enable it again.
    """

    name: str
    fingerprint: str
    disabled_us: int = 0
    ok_us: int = 0
    fail_us: int = 0
    fails: int = 0
    error: str = ""
    told: str = ""
