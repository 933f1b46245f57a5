"""The graph's interface to one turn: its message, its context, and the events it emits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from phylactery_forms.definitions.model import Form
from phylactery_forms.dialogue.state import ConversationState
from phylactery_forms.values.model import Context

from phylactery_agent.ports.files import SentFiles
from phylactery_agent.ports.forms import FormContext, FormReader, Submissions
from phylactery_agent.ports.gate import Gate, GateDecision, Inspector, Language
from phylactery_agent.ports.ledger import Ledger
from phylactery_agent.ports.memory import Hydration, Memories, Outputs
from phylactery_agent.ports.model import Model
from phylactery_agent.ports.reminders import Reminders
from phylactery_agent.ports.undo import Undoing


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One completed node; nodes of one superstep share its graph_step, which is LangGraph's own count."""

    node: str
    graph_step: int
    started_us: int
    duration_us: int
    next_nodes: tuple[str, ...]
    """The next nodes of the graph; empty at the end of the turn."""
    tool_call_id: str = ""
    finish_reason: str = ""


class Trail(Protocol):
    """The runtime's record of a turn's nodes, stored together with the checkpoint they lead to, or not at all."""

    def begin(self) -> None:
        """Report that a node begins. Raise the error that stops the run beforehand."""
        ...

    def now_us(self) -> int:
        """Return the time, in microseconds since the epoch."""
        ...

    def note(self, step: NodeStep) -> None:
        """Record a completed node."""
        ...


class NoTrail:
    """A trail that records nothing, for graphs that run without the runtime."""

    def begin(self) -> None:
        """Allow every node to begin."""

    def now_us(self) -> int:
        """Return 0, because nothing reads it."""
        return 0

    def note(self, step: NodeStep) -> None:
        """Do nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event: kind is a name of the Event oneof, payload its fields in JSON form.

    key makes it unique per turn: a node that runs again after a crash emits nothing twice.
    """

    kind: str
    payload: Mapping[str, Any]
    key: str


class Events(Protocol):
    """The thread's public event log."""

    async def emit(self, *told: Told) -> None:
        """Store events in one commit, in order, no later than anything that depends on them; then they are sent."""
        ...


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that a run asks a person to approve; open means that it is unanswered."""

    approval_id: str
    tool: str
    approval_class: str
    open: bool = True
    step_id: str = ""
    step: str = ""
    """What the step of that id does, in the person's words; empty if it is not known."""
    high: bool = False
    """True if it is shown and named before the others of its card."""


def as_shown(card: Sequence[ApprovalRequest]) -> list[ApprovalRequest]:
    """Return the calls of one run's card in the order in which a person is shown them, so that "the first" is one."""
    return sorted(card, key=lambda one: not one.high)


@dataclass(frozen=True, slots=True)
class OpenForm:
    """The form that a turn goes on with: its definition and its conversation, as the turn found them."""

    definition: Form
    conversation: ConversationState = field(repr=False)
    now: datetime
    """When the person said it, in the form's time zone."""
    opens: bool = False
    """Whether it begins with this turn."""
    waiting: str = ""
    """The fingerprint of the submission that waits for its approval; empty if none does."""
    standing: str = ""
    """What became of an earlier submission that the conversation does not know of: sent or in_doubt."""
    dropped: tuple[str, ...] | None = None
    """The fields whose answers a changed form no longer takes; None if it has not changed since."""
    on_duty: bool = False
    """Whether people work the queue of escalations."""
    sender_phone: str = field(default="", repr=False)
    """The number the person writes from, if they mean it; empty if they do not, or it is not known."""

    def nodes_context(self, reader: FormReader | None = None) -> FormContext:
        """Return what the nodes of the form graph need; reader is a model's reading, None without a model."""
        given = self.context(self.conversation["language"])
        return FormContext({self.definition.id: self.definition}, given, reader)

    def context(self, language: Language) -> Context:
        """Return what reading a value may depend on."""
        return Context(language, self.now, self.conversation["region"], own_phone=self.sender_phone)


@dataclass(frozen=True, slots=True)
class LikelyMeaning:
    """What words that no pattern reads most likely mean: a request, or a reply by its key."""

    request: str = ""
    """The request in words that the patterns read; RiskGate is given the person's own."""
    offered: bool = False
    """Whether the request is only offered: it is planned if the next message is a yes."""
    key: str = ""
    values: Mapping[str, str] = field(default_factory=dict)
    intent: str = ""
    left: tuple[str, ...] = ()
    """Messages of the same turn that are no part of the request, and are answered beside it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message being served: its author, text, thread and run."""

    turn_id: str
    run_id: str
    thread_id: str
    user_id: str
    tenant: str
    text: str
    """The person's message, with codes masked."""
    language: Language
    intent: str
    pathway: str
    hydration: Hydration | None = None
    """Memory's context: the window's messages are dicts with id, role, content. None keeps the run's last read."""
    permissions_level: str = "user"
    allowed_tools: tuple[str, ...] = ()
    session_token_hash: str = ""
    is_sanitized: bool = False
    """Whether RiskGate inspected the text before it was stored and its secrets are redacted."""
    findings: tuple[str, ...] = ()
    """The kinds found in it, each prefixed with its category: secret:jwt, personal:email."""
    do_not_store: bool = False
    meant: str = ""
    """The request that the text turns the previous one into: no, I meant b.txt. Empty if the text is self-contained."""
    stays: tuple[str, str] | None = None
    """What was done for the previous request and stays although the text corrects it: a tool, and what it changed."""
    said_before: str = ""
    """The user's last request, if the text asks for it: what did I just ask you?"""
    likely: LikelyMeaning | None = None
    """What the text most likely means, if no pattern reads it; static mode alone goes by it."""
    attachments: tuple[str, ...] = ()
    """The pointers of the attachments that came with it, in their order."""
    reasons: tuple[str, ...] = ()
    """Stable codes for why the message has its pathway."""
    others: str = ""
    """What others wrote that came with the text; it is data."""
    hidden: bool = False
    """Whether it is said in a form with sensitive fields, so that none of its words are kept readable."""
    form: OpenForm | None = None
    """The form it is said in; None where none is open and the words begin none."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """The services nodes reach through LangGraph's runtime context; never part of the state or a checkpoint."""

    gate: Gate
    outputs: Outputs
    memories: Memories
    ledger: Ledger
    events: Events
    executor: Any
    """phylactery_agent.tools.executor.Executor, the only entry to tools."""
    tools: Any
    """phylactery_agent.tools.registry.ToolRegistry, which knows the tools and runs none."""
    language: Language
    reply_code: str = field(default="", repr=False)
    """The unmasked code of an approval reply; it exists only during this turn."""
    also_answered: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The codes of the card's other approvals answered by the same reply, by id; they exist only during this turn.

    An empty one beside a yes is a no.
    """
    also_waiting: tuple[ApprovalRequest, ...] = ()
    """Approvals that other runs of the thread wait for, the oldest first."""
    evict_over_chars: int = 10_000
    model: Model | None = None
    """The model of this run; None means static mode."""
    inspector: Inspector | None = None
    """RiskGate's inspection of outgoing text; None counts as unavailable, so no foreign text is quoted."""
    allowed_tools: tuple[str, ...] = ()
    """The tools the caller of this turn may use; empty means all. It narrows what the state allows, never widens it."""
    findings: tuple[str, ...] = ()
    """The kinds found in the person's message of this turn, each prefixed with its category."""
    reminders: Reminders | None = None
    """The person's reminders; None without a reminder store."""
    submissions: Submissions | None = None
    """Where the forms of this turn are submitted; None without a store of them."""
    files: SentFiles | None = None
    """What sends files in the thread; None where nothing does."""
    undoing: Undoing | None = None
    """What was done in the thread and can be taken back; None where nothing is."""
    begins: Sequence[Form] = ()
    """The forms that words can begin, which help names."""
    form: OpenForm | None = None
    """The form of this turn; None where none is open and the words begin none."""
    trail: Trail = field(default_factory=NoTrail)
    """The record of executed nodes, written by the wrapper of every node."""
    allowed: dict[str, GateDecision] = field(default_factory=dict, repr=False)
    """ALLOW decisions of this turn by tool_call_id, with their permits: from RiskGate to Tools, once, never stored."""
    forms: FormContext | None = None
    """The forms of this deployment and the turn's time, for the form nodes; None where the turn has none."""
