"""Result types of the edge, before encoding as protobuf."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from phylactery_agent.ports import ApprovalInfo
from phylactery_agent.runtime.storage.records import StoredEvent, StoredRun, StoredThread, StoredToolCall


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """An approval waiting for the requester: stored fields, and current code and arguments from RiskGate, by id.

    stored has the other approvals of the card in "also".
    """

    stored: Mapping[str, Any]
    live: Mapping[str, ApprovalInfo] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """An event in the form for the requester; live has approval_required's PENDING approvals, by id."""

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
    """A thread, its newest run, and its pending cards, the newest first."""

    thread: StoredThread
    run: ShownRun | None
    pending: Sequence[PendingApproval] = ()
