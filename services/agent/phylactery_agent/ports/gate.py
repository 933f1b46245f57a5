"""RiskGate's interface for the graph: proposals in; decisions, approvals and receipts out.

Nothing here names a task: the runtime, never the graph, decides which task a call belongs to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Protocol

from phylactery_agent.ports.undo import ReversalResult

Language = Literal["es", "en"]
LOW_STAKES: Final = "LOW_STAKES"
"""The first reason of a call that ran without a question although it was not clearly asked for."""


class GateUnavailableError(Exception):
    """Error for a RiskGate that did not answer or could not make its record durable: nothing may run."""


class GateRefusedError(Exception):
    """Error for a redeem or a person's answer that RiskGate refused.

    Holds the ErrorReason without its prefix, the message for a person and the metadata (factor, state, attempts_left).
    """

    def __init__(self, reason: str, message: str, metadata: Mapping[str, str] | None = None) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})


NO_FILE: Final = "-"
"""In place of a hash: there is no file."""
UNHASHED: Final = "?"
"""In place of a hash: the call was proposed by a version that recorded none."""


@dataclass(frozen=True, slots=True)
class ProposedCall:
    """One proposed tool call: raw arguments as a JSON object, and their RFC 8785 form and hash."""

    tool: str
    tool_call_id: str
    args: dict[str, Any]
    canonical_args: str
    args_hash: str
    schema_hash: str = ""
    content_hash: str = ""
    """The SHA-256 of the file that the call would send or replace, as it is when it is proposed.

    Empty for other calls, and NO_FILE where a write would replace none.
    """


@dataclass(frozen=True, slots=True)
class BoundCall:
    """The call bound by RiskGate: arguments_json is exactly what may run."""

    tool: str
    tool_version: str
    arguments_json: str
    args_hash: str


@dataclass(frozen=True, slots=True)
class FormRun:
    """The form whose run submits a call: its id and version, and whether its file wants somebody else's approval."""

    form: str
    version: str
    peer: bool


@dataclass(frozen=True, slots=True)
class CallContext:
    """What a proposed call belongs to: its conversation, its run, its step of the plan, the approval it uses.

    pathway is how the message behind the call is served: text_fast_path, tool_intent, rich_input or standby. form_run
    is the form that submits the call, None for any other call.
    """

    thread_id: str
    run_id: str
    plan_step: str
    pathway: str
    approval_id: str = ""
    form_run: FormRun | None = None


@dataclass(frozen=True, slots=True)
class Reversal:
    """What became of an effect that an execution was to take back."""

    execution_id: str
    result: ReversalResult
    error_code: str = ""


@dataclass(frozen=True, slots=True)
class ExecutionReport:
    """How an execution ended, and what it took back."""

    execution_id: str
    outcome: Literal["SUCCEEDED", "FAILED", "IN_DOUBT"]
    result_hash: str
    result_size: int
    error_code: str
    reversals: tuple[Reversal, ...] = ()
    not_done: bool = False
    """Whether the attempt certainly did nothing, and so uses up no ask."""


@dataclass(frozen=True, slots=True)
class GateReason:
    """One reason of a decision, in both languages."""

    code: str
    message: str
    message_es: str
    path: str = ""
    policy_id: str = ""

    def text(self, language: Language) -> str:
        """Return the sentence in the language."""
        return self.message_es if language == "es" and self.message_es else self.message


@dataclass(frozen=True, slots=True)
class GateArgument:
    """One bound argument in the form RiskGate shows to an approver."""

    path: str
    display: str
    control: bool = False
    left_out: int = 0
    """How many characters of the value are not in ``display``."""


@dataclass(frozen=True, slots=True)
class ApprovalInfo:
    """An approval in the requester's view; code is set only while PENDING, and never stored."""

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
    why: tuple[Mapping[Language, str], ...] = field(default=(), repr=False)
    """Why it is asked and what a yes does, by language; never stored."""
    stakes: str = ""
    """How much the call can do: low, medium, high or critical; empty if RiskGate does not say."""

    @property
    def high(self) -> bool:
        """Return True if the call is shown before others, and never approved by one sign for several."""
        return not {self.risk, self.stakes}.isdisjoint({"high", "critical"})


@dataclass(frozen=True, slots=True)
class GateDecision:
    """RiskGate's decision on one proposal."""

    decision_id: str
    decision: Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]
    reasons: tuple[GateReason, ...]
    policy_ids: tuple[str, ...]
    risk: str
    bound: BoundCall | None
    permit: str = field(default="", repr=False)
    approval: ApprovalInfo | None = None
    stakes: str = ""
    """How much the call can do: low, medium, high or critical; empty if RiskGate does not say."""

    @property
    def low_stakes(self) -> bool:
        """Return True if nothing but its low stakes allows the call."""
        return self.decision == "ALLOW" and bool(self.reasons) and self.reasons[0].code == LOW_STAKES


@dataclass(frozen=True, slots=True)
class Redeemed:
    """A redeemed permit: the receipt, the call to run, and whether this execution had redeemed before.

    low_stakes means that nothing but its low stakes allows the call: the person is to be told of it.
    """

    receipt: str
    bound: BoundCall
    repeated: bool
    stakes: str = ""
    low_stakes: bool = False


class Gate(Protocol):
    """RiskGate on behalf of one end user. Raises GateUnavailableError and, where stated, GateRefusedError."""

    async def evaluate(self, call: ProposedCall, where: CallContext) -> GateDecision:
        """Request a decision; idempotent by run, tool_call_id and arguments."""
        ...

    async def redeem(self, permit: str, call: ProposedCall, where: CallContext, *, execution_id: str) -> Redeemed:
        """Consume the permit. Raise GateRefusedError."""
        ...

    async def get_approval(self, approval_id: str, *, full: bool = False) -> ApprovalInfo:
        """Return the approval, with long values whole if ``full``. Raise GateRefusedError with APPROVAL_NOT_FOUND."""
        ...

    async def approve(self, approval_id: str, *, args_hash: str, code: str, thread_id: str) -> ApprovalInfo:
        """Forward a person's yes. Raise GateRefusedError."""
        ...

    async def reject(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Forward a person's no. Raise GateRefusedError."""
        ...

    async def cancel(self, approval_id: str, *, reason: str, thread_id: str) -> ApprovalInfo:
        """Withdraw a question of the user's own. Raise GateRefusedError."""
        ...

    async def public_keys(self, *, fresh: bool = False) -> Mapping[str, Mapping[str, str]]:
        """Return the public keys that verify receipts, JWK by kid; fresh bypasses the cache."""
        ...

    async def issuer(self) -> str:
        """Return the iss required in every receipt."""
        ...


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """One tool of the catalog: its version, as in receipts, the hash of its schema, and the level it asks for."""

    version: str
    schema_hash: str
    level: str = ""


@dataclass(frozen=True, slots=True)
class CatalogView:
    """The catalog of the active bundle, by tool name."""

    revision: int
    bundle_hash: str
    tools: Mapping[str, CatalogEntry]


class ToolCatalog(Protocol):
    """The source of the catalog."""

    async def catalog(self, known_hash: str) -> CatalogView | None:
        """Return the catalog, or None while the bundle of known_hash is active.

        Raise GateUnavailableError, GateRefusedError.
        """
        ...


@dataclass(frozen=True, slots=True)
class Inspected:
    """A text inspected by RiskGate: secrets are replaced by placeholders, personal data is left in and listed.

    secrets and personal are the kinds found, each once, sorted, in lower case: jwt, card.
    """

    text: str
    secrets: tuple[str, ...] = ()
    personal: tuple[str, ...] = ()


class Inspector(Protocol):
    """RiskGate's inspection on behalf of one end user."""

    async def inspect(self, text: str) -> Inspected:
        """Inspect a text without storing it.

        Raise GateUnavailableError if RiskGate does not answer, GateRefusedError if it rejects the text.
        """
        ...
