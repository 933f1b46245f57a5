"""Value types of the queue, free of SQL."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from phylactery_agent.runtime.handoff.status import EntryKind, EscalationStatus
from phylactery_agent.runtime.storage.records import OfThread, Owner

ReleaseTo = Literal["agent", "queue"]


@dataclass(frozen=True, slots=True)
class Handler:
    """A person who works the queue of a tenant; the identity is the transport's."""

    tenant: str
    subject: str


@dataclass(frozen=True, slots=True)
class StoredEscalation(OfThread):
    """One escalation, as stored in its row."""

    escalation_id: str
    owner: Owner
    thread_id: str
    run_id: str
    status: EscalationStatus
    policy: str
    reason: str
    form_id: str
    form_state: str = field(repr=False)
    language: str
    handler: str
    display_name: str
    claim_until_us: int
    opened_us: int
    queued_us: int
    """When it last came into the queue."""
    claimed_us: int
    """When it was claimed first; 0 before."""
    ended_us: int
    end_reason: str
    summary: str


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """One entry of a tenant's queue; it never changes."""

    sequence: int
    escalation_id: str
    kind: EntryKind
    status: EscalationStatus
    actor: str
    text: str
    created_us: int
