"""What calls answer. Fields mean what the contract's fields of the same name mean; times are aware, in UTC.

Codes, permits, receipts and argument values stay out of repr(), so that a logged result does not leak them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from phylactery.agent.v1 import event_pb2

from phylactery_client.run_results import Run


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One thing said in a thread; role is user, assistant or tool."""

    id: str
    role: str
    text: str
    create_time: datetime | None
    run_id: str
    sequence: int


@dataclass(frozen=True, slots=True)
class ApprovalArgument:
    """One bound argument, safe to print."""

    path: str
    display: str = field(repr=False)
    control: bool


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """What a thread waits for a person to answer."""

    approval_id: str
    tool: str
    risk: str
    approval_class: str
    arguments: tuple[ApprovalArgument, ...]
    expire_time: datetime | None
    code: str = field(repr=False)
    args_hash: str = ""
    also: tuple[PendingApproval, ...] = ()
    """The other calls of the turn that wait for the same person: one card."""
    action: str = ""
    """What the tool does, as it stands behind "may I"; empty from an agent that does not say it."""
    run_id: str = ""
    """The run that waits; empty in also."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The answer to one message."""

    run: Run
    reply: ChatMessage
    pending_approval: PendingApproval | None
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Thread:
    """Where a conversation stands."""

    id: str
    create_time: datetime | None
    update_time: datetime | None
    first_sequence: int
    last_sequence: int
    graph: str
    last_run: Run | None
    pending_approval: PendingApproval | None
    pending_approvals: tuple[PendingApproval, ...] = ()
    """All that waits, one card for each run, the one that was spoken of last first."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """One page of a user's threads, the newest opened first; their runs without tool calls and steps."""

    threads: tuple[Thread, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ChatPage:
    """One page of a thread's transcript, newest first."""

    messages: tuple[ChatMessage, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Event:
    """One fact of a thread; kind names what happened, for example risk_decision, and raw is the whole event."""

    thread_id: str
    run_id: str
    sequence: int
    create_time: datetime | None
    kind: str
    raw: event_pb2.Event = field(repr=False)

    @property
    def detail(self) -> Any:
        """Return the message of the event's kind, None for a kind this client does not know."""
        return getattr(self.raw, self.kind) if self.kind else None


@dataclass(frozen=True, slots=True)
class Graph:
    """A way of working through a message; a suspended run goes on in the version it stands in alone."""

    name: str
    description: str
    description_es: str
    version: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """One way a node may go; "__start__" is where a turn begins, "__end__" where it ends."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """A graph node by node, and as a Mermaid flowchart."""

    graph: Graph | None
    nodes: tuple[str, ...]
    edges: tuple[GraphEdge, ...]
    mermaid: str


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing that led to a decision."""

    code: str
    message: str
    message_es: str
    path: str
    policy_id: str


@dataclass(frozen=True, slots=True)
class BoundCall:
    """The call after schema validation and defaults; arguments_json is exactly what may run."""

    tool: str
    tool_version: str
    arguments_json: str = field(repr=False)
    args_hash: str


@dataclass(frozen=True, slots=True)
class ArgumentView:
    """One bound argument as an approver sees it."""

    path: str
    display: str = field(repr=False)
    control: bool
    sensitive: bool
    altered: bool
    marks: tuple[str, ...] = ()
    change: str = "UNSPECIFIED"
    previous_display: str = field(default="", repr=False)
    origin: str = "UNSPECIFIED"
    origin_place: str = field(default="", repr=False)
    characters_left_out: int = 0


@dataclass(frozen=True, slots=True)
class PolicyTitle:
    """A policy for a person: what it wants, in English and in Spanish."""

    id: str
    title: str
    title_es: str


@dataclass(frozen=True, slots=True)
class Approval:
    """The record that waits for a person; state is PENDING, APPROVED, REDEEMED, REJECTED, EXPIRED or CANCELLED."""

    id: str
    state: str
    approval_class: str
    tool: str
    risk: str
    args_hash: str
    arguments: tuple[ArgumentView, ...]
    thread_id: str
    run_id: str
    tool_call_id: str
    requester: str
    create_time: datetime | None
    expire_time: datetime | None
    decide_time: datetime | None
    decided_by: str
    closed_reason: str
    attempts_left: int
    code: str = field(repr=False)
    decision_id: str
    policy_ids: tuple[str, ...]
    policies: tuple[PolicyTitle, ...] = ()
    votes: int = 0
    votes_needed: int = 0
    compared_approval_id: str = ""
    arguments_left_out: int = 0
    answerable: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalChange:
    """One message of a stream of approvals: a change, or the end of the snapshot, which has no approval.

    resume_token goes on after it; within a snapshot it is empty.
    """

    approval: Approval | None
    resume_token: str
    snapshot_end: bool


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """One page of approvals, newest first."""

    approvals: tuple[Approval, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Evaluation:
    """RiskGate's answer to one proposal; decision is ALLOW, AUTH_REQUIRED or BLOCKED."""

    decision_id: str
    decision: str
    reasons: tuple[Reason, ...]
    bound_call: BoundCall | None
    permit: str = field(repr=False)
    permit_expire_time: datetime | None
    approval: Approval | None
    policy_ids: tuple[str, ...]
    bundle_revision: int
    risk: str
    audit_index: int
    replayed: bool
    audit_log: str = ""


@dataclass(frozen=True, slots=True)
class Redemption:
    """What an executor obeys: the signed receipt and the call to run."""

    receipt: str = field(repr=False)
    bound_call: BoundCall
    redeem_time: datetime | None
    repeated_redeem: bool


@dataclass(frozen=True, slots=True)
class Task:
    """One request of a user, as RiskGate was shown it; it ends by itself at expire_time."""

    task_id: str
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class Observation:
    """What RiskGate kept of a tool's result; cut says that it held more than is kept.

    unproven says that the tool writes and no redemption of the call is known, so that nothing of it is believed.
    """

    values: int
    cut: bool
    replayed: bool
    unproven: bool


@dataclass(frozen=True, slots=True)
class Key:
    """One public key; state is ACTIVE, RETIRING or REVOKED, and a REVOKED one verifies nothing."""

    kid: str
    jwk: str
    state: str
    create_time: datetime | None = None
    retire_time: datetime | None = None
    revoke_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys permits and receipts verify with, and the iss they carry; max_age says how long to believe them."""

    keys: tuple[Key, ...]
    issuer: str
    etag: str = ""
    not_modified: bool = False
    max_age: timedelta | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """What is known about one output; its sizes are the original's.

    expire_time is None where it is kept for good; the text of one that is not_stored is nowhere.
    """

    pointer: str
    thread_id: str
    run_id: str
    tool_call_id: str
    tool_name: str
    size_chars: int
    size_bytes: int
    sha256: str
    evicted: bool
    rehydration_allowed: bool
    create_time: datetime | None
    size_lines: int = 0
    expire_time: datetime | None = None
    not_stored: bool = False


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """What became of an output; placeholder stands in a context instead, and is empty where it was not evicted."""

    output: Output
    placeholder: str
    preview_head: str
    preview_tail: str


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of characters; next_offset equals total_chars at the end, and next_line is total_lines + 1.

    Lines count from 1; next_skip_chars is how much of next_line was answered already.
    """

    text: str
    offset: int
    next_offset: int
    total_chars: int
    first_line: int = 0
    next_line: int = 0
    next_skip_chars: int = 0
    total_lines: int = 0


@dataclass(frozen=True, slots=True)
class Appended:
    """Where a thread stands after messages were added."""

    last_sequence: int
    appended: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """One message of the window; role is USER, ASSISTANT or TOOL."""

    message_id: str
    role: str
    content: str
    run_id: str
    create_time: datetime | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Window:
    """One page of the window, newest first."""

    messages: tuple[StoredMessage, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; disabled_reason is a word such as SCHEMA_DIFFERS, UNSPECIFIED where it is enabled."""

    name: str
    description: str
    description_es: str
    schema_hash: str
    version: str
    risk: str
    effect: str
    idempotency: str
    timeout: timedelta
    retries: int
    control_arguments: tuple[str, ...]
    source: str
    enabled: bool
    disabled_reason: str
    checked: bool


@dataclass(frozen=True, slots=True)
class ToolList:
    """Every tool, by name, and the catalog they were held against; check_time is None where that never was."""

    tools: tuple[Tool, ...]
    catalog_revision: int
    check_time: datetime | None
