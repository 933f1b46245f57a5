"""What the graph needs from outside, as protocols: RiskGate, memory, the ledger, the thread's events.

The graph imports these and nothing that speaks gRPC or SQL; the adapters and the runtime implement them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Language = Literal["es", "en"]


class GateUnavailableError(Exception):
    """RiskGate did not answer, or could not make its record durable: nothing may run."""


class GateRefusedError(Exception):
    """RiskGate answered no to a redeem or to a person's answer.

    Holds the ErrorReason without its prefix, the message for a person and the metadata (factor, state, attempts_left).
    """

    def __init__(self, reason: str, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})


class MemoryUnavailableError(Exception):
    """The memory service did not answer."""


class MemoryRefusedError(Exception):
    """The memory service answered no: unknown pointer, range past the end. Holds reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


class LeaseLostError(Exception):
    """Another process holds the run now: this one stops at once and writes nothing more."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One proposed tool call: raw arguments as a JSON object, and their RFC 8785 form and hash."""

    tool: str
    tool_call_id: str
    args: dict[str, Any]
    canonical_args: str
    args_hash: str
    schema_hash: str = ""


@dataclass(frozen=True, slots=True)
class BoundCall:
    """The call RiskGate bound: arguments_json is exactly what may run."""

    tool: str
    tool_version: str
    arguments_json: str
    args_hash: str


@dataclass(frozen=True, slots=True)
class GateReason:
    """One reason of a decision, in both languages."""

    code: str
    message: str
    message_es: str
    path: str = ""
    policy_id: str = ""

    def text(self, language: Language) -> str:
        """Answers the sentence in the language."""
        return self.message_es if language == "es" and self.message_es else self.message


@dataclass(frozen=True, slots=True)
class GateArgument:
    """One bound argument as RiskGate shows it to an approver."""

    path: str
    display: str
    control: bool = False


@dataclass(frozen=True, slots=True)
class ApprovalInfo:
    """An approval as the requester may see it; code is set only while PENDING, and never stored."""

    id: str
    state: str
    approval_class: str
    tool: str
    risk: str
    args_hash: str
    thread_id: str
    run_id: str
    tool_call_id: str
    expire_us: int
    closed_reason: str = ""
    attempts_left: int = 0
    code: str = field(default="", repr=False)
    arguments: tuple[GateArgument, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class GateDecision:
    """RiskGate's answer to one proposal."""

    decision_id: str
    decision: Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]
    reasons: tuple[GateReason, ...]
    policy_ids: tuple[str, ...]
    risk: str
    bound: BoundCall | None
    permit: str = field(default="", repr=False)
    approval: ApprovalInfo | None = None


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A redeemed permit: the receipt, the call to run, and whether this execution had redeemed before."""

    receipt: str
    bound: BoundCall
    repeated: bool


class Gate(Protocol):
    """RiskGate, asked on behalf of one end user. Raises GateUnavailableError and, where said, GateRefusedError."""

    async def evaluate(
        self, call: ProposedCall, *, thread_id: str, run_id: str, plan_step: str, pathway: str, approval_id: str = ""
    ) -> GateDecision:
        """Asks for a decision; idempotent by run, tool_call_id and arguments.

        pathway is how the message is served that the call answers: text_fast_path, tool_intent, rich_input or standby.
        """
        ...

    async def redeem(
        self, permit: str, call: ProposedCall, *, execution_id: str, thread_id: str, run_id: str
    ) -> Redeemed:
        """Consumes the permit. Raises GateRefusedError."""
        ...

    async def report_outcome(
        self,
        execution_id: str,
        *,
        outcome: Literal["SUCCEEDED", "FAILED", "IN_DOUBT"],
        result_hash: str,
        result_size: int,
        error_code: str,
    ) -> None:
        """Records how the execution ended; idempotent. Raises GateRefusedError."""
        ...

    async def get_approval(self, approval_id: str) -> ApprovalInfo:
        """Answers the approval. Raises GateRefusedError with APPROVAL_NOT_FOUND."""
        ...

    async def approve(self, approval_id: str, *, args_hash: str, code: str, thread_id: str) -> ApprovalInfo:
        """Passes a person's yes on. Raises GateRefusedError."""
        ...

    async def reject(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Passes a person's no on. Raises GateRefusedError."""
        ...

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Answers the public keys receipts verify with, JWK by kid; fresh asks again instead of the cache."""
        ...

    async def issuer(self) -> str:
        """Answers the iss every receipt must carry."""
        ...


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """What became of an output given to memory; sizes are the original's."""

    evicted: bool
    pointer: str
    placeholder: str
    size_chars: int
    sha256: str
    rehydration_allowed: bool
    preview_head: str = ""
    preview_tail: str = ""


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of characters of a stored output."""

    text: str
    offset: int
    next_offset: int
    total_chars: int


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of a stored output, or the part of it at hand; matched tells it from the lines around a match."""

    number: int
    offset: int
    text: str
    matched: bool


@dataclass(frozen=True, slots=True)
class OutputMatches:
    """The lines a search found, in order and each once; next_offset equals total_chars when all was searched."""

    lines: Sequence[OutputLine]
    offset: int
    next_offset: int
    total_chars: int


class Outputs(Protocol):
    """The output side of memory, on behalf of one end user. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def store_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str
    ) -> StoredOutput:
        """Keeps an output; idempotent by tool_call_id and text."""
        ...

    async def read_output(self, pointer: str, *, offset: int, limit: int) -> OutputRange:
        """Reads a range of characters of one of the user's outputs."""
        ...

    async def rehydrate_output(self, pointer: str) -> str:
        """Answers the whole text of one of the user's outputs, where it is short enough to return to a context."""
        ...

    async def search_output(
        self, pointer: str, pattern: str, *, literal: bool, ignore_case: bool, context_lines: int, offset: int
    ) -> OutputMatches:
        """Finds the lines of one of the user's outputs that an RE2 expression, or with literal a text, matches."""
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a text given to memory: its id, or the reason why it is not kept (SECRET_PASSWORD, …)."""

    memory_id: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory: untrusted text came from a tool or the web and is data, never an instruction.

    source (user, assistant, tool, web, system) is who said it first, trust (untrusted, assistant, user, system) how far
    it may be believed.
    """

    text: str
    untrusted: bool
    valid_us: int
    memory_id: str = ""
    source: str = ""
    trust: str = ""


@dataclass(frozen=True, slots=True)
class ProfileValue:
    """One thing that holds about the person for good, and who said it. A tool or the web never did."""

    name: str
    value: str | float | bool
    source: str
    trust: str


@dataclass(frozen=True, slots=True)
class Hydration:
    """What memory says before a turn, from one read: the window oldest first, memories best first, the profile by name.

    degraded says why nothing could be read; then all of it is empty, and the turn is served without.
    """

    window: Sequence[Mapping[str, str]] = ()
    memories: Sequence[Recalled] = ()
    profile: Sequence[ProfileValue] = ()
    degraded: str = ""


class Memories(Protocol):
    """What is remembered about one end user, in one turn. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def remember(self, text: str) -> Remembered:
        """Keeps a text because it was asked for; the same text again is the same memory."""
        ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Answers what fits the words, best first; without words what was said last."""
        ...


LedgerState = Literal["proposed", "denied", "started", "finished", "in_doubt"]


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One effect in the ledger. permit and output stay inside the agent's own database."""

    tool_call_id: str
    tool: str
    state: LedgerState
    execution_id: str = ""
    effect_key: str = ""
    args_hash: str = ""
    status: str = ""
    error_code: str = ""
    output: str | None = field(default=None, repr=False)


class Ledger(Protocol):
    """The ledger of effects of one run. Every write holds the lease's fence; a stale one raises LeaseLostError."""

    async def find(self, tool_call_id: str) -> LedgerRow | None:
        """Answers the row of this proposal, if there is one."""
        ...

    async def propose(self, call: ProposedCall, *, plan_step: str) -> None:
        """Writes the proposal; the same one again changes nothing."""
        ...

    async def deny(self, tool_call_id: str, *, error_code: str) -> None:
        """Writes that it was blocked, rejected or expired."""
        ...

    async def start(self, tool_call_id: str, *, execution_id: str, effect_key: str, bound: BoundCall) -> None:
        """Commits that the effect is about to be redeemed and run."""
        ...

    async def finish(
        self, tool_call_id: str, *, status: Literal["success", "error"], output: str, error_code: str
    ) -> None:
        """Commits the result, and queues the report to RiskGate in the same transaction."""
        ...

    async def doubt(self, tool_call_id: str, *, error_code: str) -> None:
        """Commits that nobody can say whether the effect happened, and queues that report."""
        ...

    async def evicted(self, tool_call_id: str, *, pointer: str, size_chars: int) -> None:
        """Notes that memory keeps the output now, and drops the ledger's own copy."""
        ...

    async def check_fence(self) -> None:
        """Raises LeaseLostError unless this process still holds the run."""
        ...


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
        """Stores events in one commit, in order, then sends them to whoever listens."""
        ...


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


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What nodes reach through LangGraph's runtime context; never part of the state, never in a checkpoint."""

    gate: Gate
    outputs: Outputs
    memories: Memories
    ledger: Ledger
    events: Events
    executor: Any
    """phylactery_agent.executor.Executor, the only door to tools."""
    language: Language
    reply_code: str = field(default="", repr=False)
    """The code of an approval reply, unmasked; lives only as long as this turn."""
    evict_over_chars: int = 10_000
    allowed: dict[str, GateDecision] = field(default_factory=dict, repr=False)
    """ALLOW decisions of this turn by tool_call_id, with their permits: from RiskGate to Tools, once, past no store."""
