"""Value types returned by the runtime's stores, free of SQL."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Generic, Literal, TypeVar

from phylactery_agent.ports import ApprovalRequest, EffectState
from phylactery_agent.ports.handoff import EscalationRequest
from phylactery_agent.runtime.runs.status import RunStatus

T = TypeVar("T")
Resolution = Literal["", "happened", "did_not_happen"]
TurnKind = Literal["message", "approval_decided"]
OnBusy = Literal["enqueue", "reject", "interrupt", "coalesce"]

NO_WORDS = "📎"
"""The text of a message in which the person wrote nothing: attachments alone, or only what others wrote."""
APPROVALS_SOURCE = "riskgate/approvals"
"""Inbox source of approvals decided at RiskGate; a subject cannot contain a slash."""


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of a thread; every query on behalf of a caller is scoped to one."""

    tenant: str
    user_id: str

    def thread_key(self, thread_id: str) -> str:
        """Return the runtime's key for the owner's thread; names chosen by different users can never collide."""
        return _thread_key(self.tenant, self.user_id, thread_id)


@lru_cache(maxsize=4_096)  # a turn needs its own about twenty times
def _thread_key(tenant: str, user_id: str, thread_id: str) -> str:
    name = json.dumps([tenant, user_id, thread_id], separators=(",", ":"))
    return hashlib.sha256(name.encode()).hexdigest()


class OfThread:
    """Base of records that belong to a thread: thread_id is the owner's name for it, thread_key is globally unique."""

    __slots__ = ()
    owner: Owner
    thread_id: str

    @property
    def thread_key(self) -> str:
        """Return the key of the thread."""
        return self.owner.thread_key(self.thread_id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Message(OfThread):
    """What a turn is made of, before it is stored and after; body_hash covers the words as received, with codes."""

    owner: Owner
    thread_id: str
    turn_id: str
    body_hash: str
    text: str
    language: str
    on_busy: OnBusy = "enqueue"
    findings: str = ""
    """A JSON list of the kinds Inspect found in it; empty if it was not inspected."""
    do_not_store: bool = False
    allowed_tools: tuple[str, ...] = ()
    sealed_code: bytes | None = field(default=None, repr=False)
    sealed_words: bytes | None = field(default=None, repr=False)
    level: str = "user"
    credential_hash: str = field(default="", repr=False)
    traceparent: str = ""
    attachments: tuple[str, ...] = ()
    """What came with the text, each as its kind and, after a colon, its pointer in memory; a sticker has none."""
    form: str = ""
    """The form that the words begin in a thread without an open one; empty if they begin none."""
    others: str = ""
    """What others wrote that came with the text: forwarded, quoted, shared. It is data and never the person's word."""
    message_starts: tuple[int, ...] = ()
    """Where in the person's words as they came a further message of theirs begins."""
    sender_phone: str = field(default="", repr=False)
    """The number the person writes from, of a message that means it; empty once the turn was served."""
    over_share: str = ""
    """Set in the inbox where a share of the day was used up: which share, or "silent" once that was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incoming(Message):
    """A checked message on its way into the inbox.

    graph is the one the caller requests, or empty for the thread's own; a new thread then gets opens_graph.
    """

    message_id: str
    graph: str = ""
    opens_graph: str = "secured"


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn(Message):
    """One inbox row: a message, or an approval decided elsewhere, and the reply once it was handled.

    lead_turn is the turn this message is answered with, or empty if it is answered alone; joined are the turns answered
    with this one, whose words its text includes once it is claimed.
    """

    source: str
    position: int
    kind: TurnKind
    run_id: str
    approval_id: str
    created_us: int
    handled: bool = False
    resumed: bool = False
    handled_us: int = 0
    run_status: RunStatus | Literal[""] = ""
    run_reason: str = ""
    reply_id: str = ""
    reply_text: str = ""
    last_sequence: int = 0
    text_erased: bool = False
    """Whether what was said and replied is not kept any more."""
    lead_turn: str = ""
    joined: tuple[str, ...] = ()
    parts: tuple[StoredTurn, ...] = ()
    """The messages the text is composed of, if there are several."""

    @property
    def wordless(self) -> bool:
        """Return True if the person wrote nothing in it, and it is what others wrote."""
        return bool(self.others) and self.text == NO_WORDS

    @property
    def served_as(self) -> str:
        """Return the turn whose events and reply are this one's."""
        return self.lead_turn or self.turn_id


@dataclass(frozen=True, slots=True)
class StoredRun(OfThread):
    """One run, as stored in its row."""

    run_id: str
    thread_id: str
    owner: Owner
    graph: str
    graph_version: str
    """The version of the graph it was begun with; empty before it was served."""
    language: str
    status: RunStatus
    reason: str
    approval_id: str
    turn_id: str
    trace_id: str
    pathway: str
    steps: tuple[Mapping[str, Any], ...]
    fence: int
    created_us: int
    updated_us: int
    retry_of: str = ""
    """The failed run that this one retries."""
    supersteps: int = 0
    active_us: int = 0
    tool_calls: int = 0
    model_calls: int = 0
    tokens: int = 0
    cost_micros: int = 0
    card: tuple[ApprovalRequest, ...] = ()
    """The card of a run that waits for an approval; the call it waits for comes first."""


@dataclass(frozen=True, slots=True)
class StoredStep:
    """One node that a run executed."""

    superstep: int
    position: int
    turn_id: str
    node: str
    started_us: int
    duration_us: int
    next_nodes: tuple[str, ...]
    tool_call_id: str
    finish_reason: str


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some rows, and the token for the page after them; it is empty on the last page."""

    rows: Sequence[T]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class StoredThread:
    """One thread."""

    thread_id: str
    owner: Owner
    graph: str
    first_sequence: int
    last_sequence: int
    created_us: int
    updated_us: int


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """One event of a thread's outward log."""

    thread_id: str
    run_id: str
    turn_id: str
    sequence: int
    kind: str
    payload: Mapping[str, Any]
    created_us: int


@dataclass(frozen=True, slots=True)
class ThreadTail:
    """A page of a thread's events, in order, and its bounds; opened_us distinguishes threads of one name."""

    opened_us: int
    first_sequence: int
    last_sequence: int
    events: Sequence[StoredEvent]


@dataclass(frozen=True, slots=True)
class StoredToolCall:
    """One row of the ledger as it is shown: without output or arguments."""

    tool_call_id: str
    tool: str
    state: EffectState
    execution_id: str
    args_hash: str
    status: str
    size_chars: int
    pointer: str
    error_code: str
    run_id: str
    thread_id: str
    resolution: Resolution
    created_us: int


@dataclass(frozen=True, slots=True)
class Lease(OfThread):
    """The authority to execute one run: valid while the row has this owner and fence and its time has not expired.

    The run's checkpoints are stored under its id.
    """

    run_id: str
    turn_id: str
    thread_id: str
    owner: Owner
    holder: str
    fence: int
    traceparent: str = ""
    """The trace the turn belongs to."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A turn to serve and the authority to do so; attempt counts the claims of this turn."""

    turn: StoredTurn
    run: StoredRun
    lease: Lease
    attempt: int
    beside: tuple[StoredRun, ...] = ()
    """The thread's other runs that wait for the person: none can be added while this one is served."""
    silent: bool = False
    """A person has the thread: a message is passed on to them, and an answer to an approval card is served unheard."""


@dataclass(frozen=True, slots=True)
class Ending:
    """How a turn ends: written in one transaction."""

    status: RunStatus
    reason: str
    reply_id: str
    reply_text: str
    choices: tuple[str, ...] = ()
    """The answers that the question of the reply takes, if only these."""
    approval_id: str = ""
    card: tuple[ApprovalRequest, ...] = ()
    """Everything that is to be approved together with that approval, itself first."""
    tells_others: bool = False
    """Append to the reply what other runs of the thread wait for, if any still do."""
    stops: bool = False
    """End every other run of the thread that waits, and reply with what is not done now."""
    takes_back: str = ""
    """The run whose request the message takes back, which the reply does not say to wait: RiskGate withdraws it."""
    cuts: bool = False
    """Reply with what the run came to that this message cut short."""
    steps: tuple[Mapping[str, Any], ...] | None = None
    """The plan after the turn; None keeps the stored one."""
    do_not_store: bool = False
    """Send memory nothing of the turn, and drop what the person said in it."""
    hides_reply: bool = False
    """Send memory nothing of the reply: it may quote words that are not to be kept readable."""
    form: Any = None
    """How the turn leaves the form it was said in: forms.sessions.SessionChange, or None."""
    worth_remembering: bool = False
    """Submit what the person said in this turn to memory's write policy."""
    escalation: EscalationRequest | None = None
    """Call a person to the thread, in the same transaction."""
    passed_on: bool = False
    """The message was shown to the person who has the thread, instead of being answered."""
