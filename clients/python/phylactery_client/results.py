"""Results of calls. Fields mean the same as the contract's fields of that name; times are aware, in UTC.

Codes, permits, receipts and argument values are excluded from repr(), so that a logged result does not leak them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from phylactery.agent.v1 import event_pb2

from phylactery_client.run_results import Run


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message of a thread; role is user, assistant or tool."""

    id: str
    role: str
    text: str
    create_time: datetime | None
    run_id: str
    sequence: int
    text_erased: bool = False
    """Whether its text is not kept any more, and therefore empty."""


@dataclass(frozen=True, slots=True)
class ApprovalArgument:
    """One bound argument, safe to print."""

    path: str
    display: str = field(repr=False)
    control: bool
    left_out: int = 0
    """How many characters of the value ``display`` leaves out of its middle."""


@dataclass(frozen=True, slots=True)
class PendingApproval:
    """A call of a thread that waits for a person's approval."""

    approval_id: str
    tool: str
    risk: str
    approval_class: str
    arguments: tuple[ApprovalArgument, ...]
    expire_time: datetime | None
    code: str = field(repr=False)
    args_hash: str = ""
    also: tuple[PendingApproval, ...] = ()
    """Further calls of the turn that wait for the same person: one card."""
    action: str = ""
    """What the tool does, phrased to follow "may I"; empty if the agent does not provide it."""
    run_id: str = ""
    """The waiting run; empty in ``also``."""
    language: str = ""
    """The language of action, "es" or "en": a sentence around it is in the same one. Empty from an older agent."""
    why: tuple[str, ...] = field(default=(), repr=False)
    """Why the agent asks, and what a yes does that the arguments do not tell, as sentences to show with the call."""
    stakes: str = ""
    """How much the call can do: low, medium, high or critical; empty if it is not known."""


@dataclass(frozen=True, slots=True)
class Turn:
    """The response to one message."""

    run: Run
    reply: ChatMessage
    pending_approval: PendingApproval | None
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Thread:
    """The state of a conversation."""

    id: str
    create_time: datetime | None
    update_time: datetime | None
    first_sequence: int
    last_sequence: int
    graph: str
    last_run: Run | None
    pending_approval: PendingApproval | None
    pending_approvals: tuple[PendingApproval, ...] = ()
    """All waiting approvals, one card per run, the most recently mentioned first."""


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """A page of a user's threads, most recently created first; their runs are without tool calls and steps."""

    threads: tuple[Thread, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ChatPage:
    """A page of a thread's transcript, newest first."""

    messages: tuple[ChatMessage, ...]
    next_page_token: str


EventKind: TypeAlias = Literal[
    "run_started",
    "route_decided",
    "step",
    "tool_proposed",
    "risk_decision",
    "approval_required",
    "tool_result",
    "message_delta",
    "message",
    "run_finished",
    "memory_degraded",
    "notice",
    "handoff",
    "human_message",
    "file",
    "",
]
"""The type of an event, empty for one that is newer than this client."""


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a thread; kind is its type, for example risk_decision, and raw is the whole message."""

    thread_id: str
    run_id: str
    sequence: int
    create_time: datetime | None
    kind: EventKind
    raw: event_pb2.Event = field(repr=False)

    @property
    def detail(self) -> Any:
        """The message of the event's kind, None for a kind unknown to this client."""
        return getattr(self.raw, self.kind) if self.kind else None


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """A file that the agent sent, whole: data has the size and the hash that its event named."""

    file_id: str
    name: str
    mime_type: str
    size_bytes: int
    sha256: str
    path: str
    data: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Lift:
    """A person of a channel whom an operator lifted; ``end_time`` is None if the lift has no end."""

    subject: str
    lift_time: datetime
    lifted_by: str
    end_time: datetime | None


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph that serves threads. A suspended run only continues in the graph version it was suspended in."""

    name: str
    description: str
    description_es: str
    version: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class GraphEdge:
    """An edge between nodes; "__start__" is where a turn begins, "__end__" where it ends."""

    source: str
    target: str


@dataclass(frozen=True, slots=True)
class DrawnGraph:
    """A graph as nodes and edges, and as a Mermaid flowchart."""

    graph: Graph | None
    nodes: tuple[str, ...]
    edges: tuple[GraphEdge, ...]
    mermaid: str


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a decision."""

    code: str
    message: str
    message_es: str
    path: str
    policy_id: str


@dataclass(frozen=True, slots=True)
class BoundCall:
    """A call after schema validation and defaults; arguments_json is exactly what may run."""

    tool: str
    tool_version: str
    arguments_json: str = field(repr=False)
    args_hash: str


@dataclass(frozen=True, slots=True)
class ArgumentView:
    """A bound argument as an approver sees it."""

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
    """A policy's title for people, in English and Spanish."""

    id: str
    title: str
    title_es: str


@dataclass(frozen=True, slots=True)
class AskedBecause:
    """One sentence of why a person is asked, or of what a yes does, in English and Spanish."""

    code: str
    message: str
    message_es: str


@dataclass(frozen=True, slots=True)
class Approval:
    """An approval request; state is PENDING, APPROVED, REDEEMED, REJECTED, EXPIRED or CANCELLED."""

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
    stakes: str = "UNSPECIFIED"
    why: tuple[AskedBecause, ...] = field(default=(), repr=False)
    """It may quote the person."""


@dataclass(frozen=True, slots=True)
class ApprovalChange:
    """A message of an approvals stream: a change, or the end of the snapshot, which has no approval.

    resume_token resumes the stream after it; within a snapshot it is empty.
    """

    approval: Approval | None
    resume_token: str
    snapshot_end: bool


@dataclass(frozen=True, slots=True)
class ApprovalPage:
    """A page of approvals, newest first."""

    approvals: tuple[Approval, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Redemption:
    """What an executor acts on: the signed receipt and the call to run.

    low_stakes is True if nothing but its low stakes allows the call: tell the person of it.
    """

    receipt: str = field(repr=False)
    bound_call: BoundCall
    redeem_time: datetime | None
    repeated_redeem: bool
    stakes: str = "UNSPECIFIED"
    low_stakes: bool = False


@dataclass(frozen=True, slots=True)
class Evaluation:
    """RiskGate's decision on a proposed call; decision is ALLOW, AUTH_REQUIRED or BLOCKED.

    An ALLOW has a permit, or the redemption if the call was redeemed in the same step. stakes is UNSPECIFIED, LOW,
    MEDIUM, HIGH or CRITICAL: how much the call can do.
    """

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
    redemption: Redemption | None = None
    stakes: str = "UNSPECIFIED"


@dataclass(frozen=True, slots=True)
class Task:
    """A user's request as reported to RiskGate; it ends automatically at expire_time."""

    task_id: str
    expire_time: datetime | None


@dataclass(frozen=True, slots=True)
class Observation:
    """What RiskGate kept of a tool's result; cut is True if it was truncated.

    unproven is True if the tool writes and no redemption of the call is known, so that nothing of the result is
    trusted.
    """

    values: int
    cut: bool
    replayed: bool
    unproven: bool


@dataclass(frozen=True, slots=True)
class Key:
    """A public key; state is ACTIVE, RETIRING or REVOKED, and a REVOKED one verifies nothing."""

    kid: str
    jwk: str
    state: str
    create_time: datetime | None = None
    retire_time: datetime | None = None
    revoke_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class Keys:
    """The verification keys of permits and receipts, and their issuer; max_age is how long they may be cached."""

    keys: tuple[Key, ...]
    issuer: str
    etag: str = ""
    not_modified: bool = False
    max_age: timedelta | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """The metadata of an output; its sizes are the original's.

    expire_time is None if it is kept forever; if not_stored, the text was not kept.
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
    """The outcome of storing an output; placeholder replaces it in a context, empty if it was not evicted."""

    output: Output
    placeholder: str
    preview_head: str
    preview_tail: str


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of characters; next_offset equals total_chars at the end, and next_line is total_lines + 1.

    Lines count from 1; next_skip_chars is how much of next_line was already returned.
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
    """The state of a thread after messages were added."""

    last_sequence: int
    appended: int


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of the window; role is USER, ASSISTANT or TOOL."""

    message_id: str
    role: str
    content: str
    run_id: str
    create_time: datetime | None
    sequence: int


@dataclass(frozen=True, slots=True)
class Window:
    """A page of the window, newest first."""

    messages: tuple[StoredMessage, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool; disabled_reason is, for example, SCHEMA_DIFFERS, and UNSPECIFIED if it is enabled."""

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
    """All tools by name, and the catalog they were checked against; check_time is None if they never were."""

    tools: tuple[Tool, ...]
    catalog_revision: int
    check_time: datetime | None
