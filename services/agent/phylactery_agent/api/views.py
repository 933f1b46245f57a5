"""What the edge answers, before it is put into protobuf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phylactery_agent.ports import ApprovalInfo
from phylactery_agent.runtime.storage.records import StoredEvent, StoredRun, StoredThread, StoredToolCall


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """What waits for the requester: the stored fields, and code and arguments as RiskGate shows them right now, by id.

    stored has the other approvals of the card in "also".
    """

    stored: Mapping[str, Any]
    live: Mapping[str, ApprovalInfo] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event on its way to the requester; live has the approvals of approval_required that are PENDING, by id."""

    event: StoredEvent
    live: Mapping[str, ApprovalInfo] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run and its ledger."""

    run: StoredRun
    tool_calls: Sequence[StoredToolCall]


@dataclass(frozen=True, slots=True)
class Said:
    """The agent's reply."""

    id: str
    text: str
    run_id: str
    created_us: int


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a turn."""

    run: ShownRun
    reply: Said
    pending: PendingApproval | None
    last_sequence: int


@dataclass(frozen=True, slots=True)
class ShownThread:
    """A thread, its newest run, and the cards that wait in it, the newest first."""

    thread: StoredThread
    run: ShownRun | None
    pending: Sequence[PendingApproval] = ()
