"""The types of one decision: the raw call, the caller, the call site and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NamedTuple

from phylactery_riskgate.domain.intent.model import UNSHOWN, TaskFacts

Json = dict[str, Any]
"""A JSON object as Python's own types."""


class Decision(StrEnum):
    """The three possible decisions."""

    ALLOW = "ALLOW"
    AUTH_REQUIRED = "AUTH_REQUIRED"
    BLOCKED = "BLOCKED"


LOW_STAKES = "LOW_STAKES"
"""The first reason of a call that nothing but its low stakes allows."""


class RawCall(NamedTuple):
    """A tool call as proposed: its arguments are unchecked.

    At most one of ``arguments_json`` and ``arguments_struct`` is set; neither means an empty object. The two hashes are
    the caller's own ("sha256:" and 64 hex digits), empty if the caller sent none.
    """

    tool: str
    tool_call_id: str
    arguments_json: str | None = None
    arguments_struct: Json | None = None
    raw_args_hash: str = ""
    tool_schema_hash: str = ""


class Caller(NamedTuple):
    """The user a call would run for.

    ``level`` counts only if ``direct`` is True, i.e. the user's own credential carried it, or if it is that of a guest.
    Another delegated subject's level is the one in the bundle's entities.json for that tenant, or else "user".
    """

    subject: str
    tenant: str
    level: str = "user"
    groups: frozenset[str] = frozenset()
    direct: bool = True


Pathway = Literal["unspecified", "text_fast_path", "tool_intent", "rich_input", "standby"]


class CallSite(NamedTuple):
    """The place a call comes from.

    ``thread_tenant`` is the tenant that owns the thread; empty means the caller's own, as in every request: a thread's
    id is unique only within its tenant. ``pathway`` is how the message that the call belongs to is served, as named by
    the caller, or "unspecified".
    """

    thread_id: str
    run_id: str
    plan_step: str = ""
    thread_tenant: str = ""
    pathway: Pathway = "unspecified"


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason for a decision, in both languages and never with an argument's value in it."""

    code: str
    message: str
    message_es: str
    path: str = ""
    policy_id: str = ""


class BoundCall(NamedTuple):
    """A call after schema validation, defaults and names in NFC: this form is hashed, shown, approved and run.

    ``former`` is the same call with its paths as they were proposed, if that differs: what earlier versions hashed.
    ``nulls`` are the JSON Pointers of optional arguments that were null and are left out of this form.
    """

    tool: str
    tool_version: str
    arguments: Json
    arguments_json: str
    args_hash: str
    former: BoundCall | None = None
    nulls: tuple[str, ...] = ()

    def hashed_as(self, args_hash: str) -> BoundCall | None:
        """Return the form of the call that has a hash, or None if neither has."""
        return next((one for one in (self, self.former) if one is not None and one.args_hash == args_hash), None)


class Verdict(NamedTuple):
    """A decision and everything that explains it.

    ``bound`` is None if the call could not be bound. ``approval_class`` is set only with AUTH_REQUIRED and names the
    lowest sufficient class. ``facts`` is what Cedar was given, with types and paths in place of values. ``usage`` is
    what each budget of the tool had counted, by name, ``exceeded`` the budgets that the call would exceed, and ``task``
    what its task knew of the call. ``stakes`` is how much the call can do, according to ``stakes_reasons``. ``risk`` is
    None if the tool is unknown; ``raw_args_hash`` is empty if the arguments are not a JSON object.
    """

    decision: Decision
    reasons: tuple[Reason, ...]
    bound: BoundCall | None
    approval_class: str | None
    policy_ids: tuple[str, ...]
    bundle_revision: int
    bundle_hash: str
    risk: str | None
    raw_args_hash: str
    facts: Json
    usage: Mapping[str, Counters]
    exceeded: tuple[str, ...] = ()
    task: TaskFacts = UNSHOWN
    stakes: Stakes = "unspecified"
    stakes_reasons: tuple[str, ...] = ()

    @property
    def by_low_stakes(self) -> bool:
        """Return True if nothing but its low stakes allows the call."""
        return self.decision is Decision.ALLOW and any(one.code == LOW_STAKES for one in self.reasons[:1])


class Mark(StrEnum):
    """Why a display differs from the raw value."""

    CONTROL = "CONTROL"
    BIDI = "BIDI"
    INVISIBLE = "INVISIBLE"
    LOOK_ALIKE = "LOOK_ALIKE"
    MIXED_SCRIPT = "MIXED_SCRIPT"
    PILED_UP = "PILED_UP"
    CUT = "CUT"
    HIDDEN = "HIDDEN"


class Change(StrEnum):
    """How an argument compares with the last approved call of its tool; NOTHING if there is none."""

    NOTHING = "UNSPECIFIED"
    SAME = "SAME"
    CHANGED = "CHANGED"
    NEW = "NEW"
    REMOVED = "REMOVED"


@dataclass(frozen=True, slots=True)
class ArgumentView:
    """One bound argument as shown to an approver; every text is safe to print.

    ``origin`` is the distance of the value from the user's own words, 0 to 3, or None if the call has no task or the
    argument is absent; ``origin_place`` is where it was found. ``left_out`` is how many characters of the value's JSON
    are missing in ``display``.
    """

    path: str
    display: str
    control: bool
    sensitive: bool
    marks: tuple[Mark, ...] = ()
    change: Change = Change.NOTHING
    previous: str = ""
    origin: int | None = None
    origin_place: str = ""
    left_out: int = 0

    @property
    def altered(self) -> bool:
        """Return True if ``display`` is not the raw value."""
        return bool(self.marks)


Risk = Literal["low", "medium", "high", "critical"]
Effect = Literal["read", "write", "irreversible"]
Idempotency = Literal["read_only", "idempotent_by_key", "reconcilable", "unsafe"]
Stakes = Literal["unspecified", "low", "medium", "high", "critical"]
"""How much one call can do, from its tool's entry and its arguments (domain/catalog/stakes.py)."""
Reach = Literal["own", "shared", "people", "public"]
"""Whom an effect reaches: only the person's own records, others in the tenant, people it arrives at, or anybody."""
AmountUnit = Literal["whole", "cents", "unknown"]
"""What an amount is written in: the currency's own unit, hundredths of it, or nobody knows."""
Undo = Literal["ours", "tool", "none"]
"""What takes an effect back: an earlier state that is kept here, a tool, or nothing."""
Who = Literal["requester", "not_requester"]


@dataclass(frozen=True, slots=True)
class ApprovalClass:
    """Approval requirements: eligible approvers and their number; a class satisfies every class of a lower ``rank``.

    Ranks count from 0. An approver is in one of ``groups`` and at one of ``levels``; an empty set does not restrict.
    ``max_asked_per_hour`` limits the approval requests of one user for this class; 0 means the general limit.
    """

    name: str
    approvers: int
    who: Who
    rank: int
    groups: frozenset[str] = frozenset()
    levels: frozenset[str] = frozenset()
    max_asked_per_hour: int = 0


Per = Literal["thread", "user", "tool"]


@dataclass(frozen=True, slots=True)
class Budget:
    """A limit on calls of some tools within a window; RiskGate counts them and refuses those beyond it.

    ``per`` names what has separate counters; a tenant always has. ``amount`` is in ten-thousandths, None if the budget
    does not limit amounts.
    """

    name: str
    tools: tuple[str, ...]
    per: tuple[Per, ...]
    window_seconds: int
    calls: int
    amount: int | None
    recipients: int


@dataclass(frozen=True, slots=True)
class Counters:
    """What one budget has counted within its window, excluding the current call.

    ``amount`` is in ten-thousandths, in the call's currency; ``new_recipients`` is how many of the call's recipients
    are not among ``recipients``.
    """

    calls: int
    amount: int
    recipients: int
    new_recipients: int


Role = Literal["principal", "object", "amount", "secret", "url", "content", "date"]
"""The role of an argument: the recipient, the object, a quantity, or mere content."""
OutputKind = Literal["system", "naming", "free", "private", "orderable"]
"""Who can have written a field of a tool's result, and how the user may refer to it.

Only the system writes ``system``. ``naming`` names the object, so the user may refer to it by this. Anyone may have
written ``free``. ``private`` must not leave unless requested. By ``orderable`` the user may pick: the latest, the
cheapest."""


@dataclass(frozen=True, slots=True)
class Asks:
    """How people ask for what a tool does.

    A phrase is words in order, in which * matches up to a few words; an example is a whole request.
    """

    phrases_en: tuple[str, ...] = ()
    phrases_es: tuple[str, ...] = ()
    examples_en: tuple[str, ...] = ()
    examples_es: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Submission:
    """The arguments a form submits to a tool, with {field} in their texts, and the class that has to approve them."""

    form: str
    args: Mapping[str, Any]
    approval_class: Literal["self", "peer"]


@dataclass(frozen=True, slots=True)
class CatalogTool:
    """One tool of the catalog.

    ``version`` is a hash over the schema and the contract, ``schema_hash`` over the RFC 8785 form of the schema alone.
    ``controls``, ``sensitive`` and ``paths`` (arguments that name files) hold JSON Pointers; a pointer covers
    everything below it. ``amount``, ``currency`` and ``recipients`` point at what budgets count, and ``budgets`` are
    those that count the tool. ``amount_unit`` is what the amount is written in, ``amount_currency`` its currency where
    no argument says it. ``targets`` point at where it reaches out to, and ``allowed_targets`` is what the bundle
    lists.

    The other fields are data for task facts and not part of ``version``. ``roles`` is keyed by JSON Pointer, which
    covers everything below it unless a longer one does; a control without a role is an object, any other argument
    content. ``outputs`` pairs pointers into the tool's result, in which * is any item or property and "" the whole,
    with the kind of the values at and below it; the longest pointer that fits a place counts, and a place that none
    fits is free. ``registry`` points at outputs whose whole values may be trusted even if the user did not name them.
    ``submissions`` are the calls that forms may make of it; of a tool for forms alone, those of any tool.
    ``effectless`` is a read that does not read anything either, such as thinking aloud: the catalog's ``effect: none``.
    ``forms_only`` says that nothing but the run of a form may call it, with the form and its version as arguments.

    What a call can do is part of ``version`` again: ``reach`` (None: not said), ``undo`` with the tool that takes it
    back, ``spends``, ``destroys``, ``guards``, the arguments that a read ``sends`` out of the system, and the tools
    that its goal ``needs`` before it. ``undoable`` is True if an undo counts: one of ours, or a tool's that was tried.
    ``reviewed`` is True if a person reviewed the entry as it is, and ``review`` is the digest of what is reviewed.
    """

    name: str
    version: str
    risk: Risk
    effect: Effect
    level: str
    controls: tuple[str, ...]
    sensitive: tuple[str, ...]
    paths: tuple[str, ...]
    schema: Mapping[str, Any]
    schema_hash: str
    timeout_seconds: float
    idempotency: Idempotency
    description: str
    description_es: str
    amount: str = ""
    amount_unit: AmountUnit = "whole"
    amount_currency: str = ""
    currency: str = ""
    recipients: tuple[str, ...] = ()
    budgets: tuple[Budget, ...] = ()
    targets: tuple[str, ...] = ()
    allowed_targets: frozenset[str] = frozenset()
    roles: Mapping[str, Role] = field(default_factory=dict)
    asks: Asks = Asks()
    outputs: tuple[tuple[str, OutputKind], ...] = ()
    registry: tuple[str, ...] = ()
    effectless: bool = False
    submissions: tuple[Submission, ...] = ()
    forms_only: bool = False
    reach: Reach | None = None
    undo: Undo | None = None
    undo_tool: str = ""
    undoable: bool = False
    spends: bool = False
    destroys: bool = False
    guards: bool = False
    sends: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()
    reviewed: bool = False
    review: str = ""
