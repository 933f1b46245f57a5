"""One turn as the graph sees it: what was said, what it reaches, and what it tells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from phylactery_agent.ports.gate import Gate, GateDecision, Inspector, Language
from phylactery_agent.ports.ledger import Ledger
from phylactery_agent.ports.memory import Hydration, Memories, Outputs
from phylactery_agent.ports.model import Model
from phylactery_agent.ports.reminders import Reminders


@dataclass(frozen=True, slots=True)
class NodeStep:
    """One node that ran to its end; nodes of one superstep share its graph_step, which is LangGraph's own count."""

    node: str
    graph_step: int
    started_us: int
    duration_us: int
    next_nodes: tuple[str, ...]
    """Where the graph goes from there; empty at the end of the turn."""
    tool_call_id: str = ""
    finish_reason: str = ""


class Trail(Protocol):
    """What the runtime keeps of the nodes of one turn: it is stored with the checkpoint they lead to, or not at all."""

    def begin(self) -> None:
        """Say that a node begins. Raise what stops the run before it does."""
        ...

    def now_us(self) -> int:
        """Return the time, in microseconds since the epoch."""
        ...

    def note(self, step: NodeStep) -> None:
        """Take a node that ended."""
        ...


class NoTrail:
    """A trail that keeps nothing, for graphs that run without the runtime."""

    def begin(self) -> None:
        """Let every node begin."""

    def now_us(self) -> int:
        """Return 0: nobody reads it."""
        return 0

    def note(self, step: NodeStep) -> None:
        """Keep nothing."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event: kind is a name of the Event oneof, payload its fields in JSON form.

    key makes it happen once per turn: a node that runs again after a crash tells nothing twice.
    """

    kind: str
    payload: Mapping[str, Any]
    key: str


class Events(Protocol):
    """The thread's outward log."""

    async def emit(self, *told: Told) -> None:
        """Store events in one commit, in order, no later than whatever follows from them; then they are sent."""
        ...


@dataclass(frozen=True, slots=True)
class Asked:
    """One call a run asks a person about; open says that nobody has answered it yet."""

    approval_id: str
    tool: str
    approval_class: str
    open: bool = True


@dataclass(frozen=True, slots=True)
class Turn:
    """One message being served: who says what, where, in which run."""

    turn_id: str
    run_id: str
    thread_id: str
    user_id: str
    tenant: str
    text: str
    """What the person said, codes masked."""
    language: Language
    intent: str
    pathway: str
    hydration: Hydration | None = None
    """What memory says: the window's messages are dicts with id, role, content. None keeps what the run read last."""
    permissions_level: str = "user"
    allowed_tools: tuple[str, ...] = ()
    session_token_hash: str = ""
    is_sanitized: bool = False
    """RiskGate looked at the text before it was stored, and its secrets are redacted."""
    findings: tuple[str, ...] = ()
    """The kinds it found, each after its category: secret:jwt, personal:email."""
    do_not_store: bool = False
    meant: str = ""
    """The request that the text makes of the one before it: no, I meant b.txt. Empty where it stands by itself."""


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What nodes reach through LangGraph's runtime context; never part of the state, never in a checkpoint."""

    gate: Gate
    outputs: Outputs
    memories: Memories
    ledger: Ledger
    events: Events
    executor: Any
    """phylactery_agent.tools.executor.Executor, the only door to tools."""
    language: Language
    reply_code: str = field(default="", repr=False)
    """The code of an approval reply, unmasked; lives only as long as this turn."""
    also_answered: Mapping[str, str] = field(default_factory=dict, repr=False)
    """The codes of the other approvals of the card that the same reply answers, by id; they live as long."""
    also_waiting: tuple[Asked, ...] = ()
    """What other runs of the thread ask a person about, the oldest first."""
    evict_over_chars: int = 10_000
    model: Model | None = None
    """The model of this run; None is static mode."""
    inspector: Inspector | None = None
    """RiskGate's inspection of what goes out; None counts as away, so nothing foreign is quoted."""
    allowed_tools: tuple[str, ...] = ()
    """What the caller of this turn may use; empty is everything. It narrows what the state allows, never widens it."""
    findings: tuple[str, ...] = ()
    """The kinds the edge found in what the person said in this turn, each after its category."""
    reminders: Reminders | None = None
    """The person's reminders; None where nobody keeps any."""
    trail: Trail = field(default_factory=NoTrail)
    """Where the wrapper of every node notes that it ran."""
    allowed: dict[str, GateDecision] = field(default_factory=dict, repr=False)
    """ALLOW decisions of this turn by tool_call_id, with their permits: from RiskGate to Tools, once, past no store."""
