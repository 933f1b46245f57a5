"""A bundle's test cases: a call, a user and the expected decision."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import compress
from typing import Annotated, Any, Literal

from phylactery_chassis.auth.levels import USER, level_of_delegated
from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.catalog.submissions import FORM_NAME
from phylactery_riskgate.domain.documents import Document
from phylactery_riskgate.domain.intent.model import (
    CUT_SHORT,
    FROM_TEXT,
    MASKED,
    NAMED,
    NOBODY,
    RULES,
    UNSHOWN,
    Evidence,
    FormRun,
    Heard,
    TaskFacts,
)
from phylactery_riskgate.domain.model import BoundCall, Caller, CatalogTool, Counters, Pathway
from phylactery_riskgate.domain.pointers import pointer
from phylactery_riskgate.domain.policy.evidence import MAX_INTENT, MAX_ORIGIN, MAX_SIGNALS, TaskReader
from phylactery_riskgate.domain.policy.usage import Charge, units_of

_CASE = "the case"
"""The place of every value of a case, in evidence."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CaseUser(_Strict):
    """The requesting user. A delegated user's level comes from entities.json, except that of a guest."""

    id: str = "ana"
    tenant: str = "acme"
    level: str = ""
    groups: list[str] = []
    delegated: bool = False

    def caller(self) -> Caller:
        """Return the caller that RiskGate would see: a delegated person of a channel is a guest by default."""
        level = self.level or (level_of_delegated(self.id) if self.delegated else USER)
        return Caller(self.id, self.tenant, level, frozenset(self.groups), direct=not self.delegated)


class CaseApprover(_Strict):
    """An approver as described by their own token; entities.json may add a level and groups, or revoke the right."""

    id: Annotated[str, Field(min_length=1)]
    level: str = "user"
    groups: list[str] = []
    approver: bool = True


class Expectation(_Strict):
    """The expected result. ``policies`` and ``reason`` are compared only if given."""

    decision: Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]
    approval_class: str | None = None
    policies: list[str] | None = None
    reason: str | None = None


def _exact(value: float) -> float:
    if units_of(value) is None:
        raise ValueError("an amount is not negative, and has at most four places after the point")
    return value


class CaseUsage(_Strict):
    """Budget usage before the call. By default every recipient of the call is new."""

    calls: Annotated[int, Field(ge=0)] = 0
    amount: Annotated[int | float, AfterValidator(_exact)] = 0
    recipients: Annotated[int, Field(ge=0)] = 0
    new_recipients: Annotated[int, Field(ge=0)] | None = None

    def counters(self, recipients: int) -> Counters:
        """Return the counters as the store would hold them, for a call with the given number of recipients."""
        new = recipients if self.new_recipients is None else self.new_recipients
        return Counters(self.calls, units_of(self.amount) or 0, self.recipients, new)


class CaseFormRun(_Strict):
    """The form whose run submits the call, as the agent would say."""

    form: Annotated[str, Field(pattern=FORM_NAME)]
    version: str = "1"
    peer: bool = False


class CaseFacts(_Strict):
    """Task facts of a call. By default the call was not requested and its arguments have no known origin.

    ``origin`` is the worst origin; ``by`` gives a different origin for named top-level arguments. ``foreign`` defaults
    to True with the worst origin. The request is understood by the rules. ``by_user`` (by default with an ``intent``),
    ``in_text`` and ``confirmed`` say who asks for such a call, ``own`` (by default with origin 0) and ``pointed`` more
    about the origin, and ``read`` that anything was read. ``form_run`` is the form that submits the call, with or
    without a task.
    """

    shown: bool = True
    intent: Annotated[int, Field(ge=0, le=MAX_INTENT)] = 0
    origin: Annotated[int, Field(ge=0, le=MAX_ORIGIN)] = MAX_ORIGIN
    by: dict[str, Annotated[int, Field(ge=0, le=MAX_ORIGIN)]] = {}
    signals: Annotated[int, Field(ge=0, le=MAX_SIGNALS)] = 0
    refused: bool = False
    understood_by: Literal["rules", "interpreter", "confirmed", "nobody"] | None = None
    foreign: bool | None = None
    from_text: bool = False
    masked: bool = False
    cut_short: bool = False
    by_user: bool | None = None
    in_text: bool = False
    confirmed: bool = False
    pointed: bool = False
    own: bool | None = None
    was_read: Annotated[bool, Field(alias="read")] = True
    form_run: CaseFormRun | None = None

    def read(self, _tool: CatalogTool, bound: BoundCall) -> TaskFacts:
        """Return the facts as a task would report them."""
        told = self.form_run
        run = None if told is None else FormRun(told.form, told.version, told.peer)
        if not self.shown:
            return replace(UNSHOWN, form_run=run)
        found = [Evidence(pointer((name,)), self.by.get(name, self.origin), _CASE) for name in bound.arguments]
        return TaskFacts(
            shown=True,
            intent=self.intent,
            intent_words=(),
            arguments=tuple(sorted(found, key=lambda one: (-one.origin, one.path))),
            worst=self.origin,
            signals=self.signals,
            signal_reasons=tuple(
                compress((FROM_TEXT, MASKED, CUT_SHORT), (self.from_text, self.masked, self.cut_short))
            ),
            refused=self.refused,
            foreign=self.origin == MAX_ORIGIN if self.foreign is None else self.foreign,
            understood_by=self.understood_by or (RULES if self.intent == MAX_INTENT else NOBODY),
            form_run=run,
            heard=Heard(self.intent > 0 if self.by_user is None else self.by_user, self.in_text, self.confirmed),
            pointed=self.pointed,
            own=self.origin == NAMED if self.own is None else self.own,
            read=self.was_read,
        )


class BundleCase(_Strict):
    """One case. ``usage`` is the budget usage, zero for budgets it does not name.

    ``approved`` lists classes taken as approved. ``approvals`` lists who approved a class; it counts only if they are
    eligible and enough of them approved. Without ``facts`` the call has no task.
    """

    name: Annotated[str, Field(min_length=1)]
    tool: str
    arguments: dict[str, Any] = {}
    user: CaseUser = CaseUser()
    thread_tenant: str = ""
    pathway: Pathway = "unspecified"
    approved: list[str] = []
    approvals: dict[str, Annotated[list[CaseApprover], Field(max_length=20)]] = {}
    usage: dict[str, CaseUsage] = {}
    facts: CaseFacts | None = None
    expect: Expectation

    def read_usage(self, tool: CatalogTool, charge: Charge) -> dict[str, Counters]:
        """Return the case's usage as the store would report it."""
        told = {budget.name: self.usage.get(budget.name, CaseUsage()) for budget in tool.budgets}
        return {name: one.counters(len(charge.recipients)) for name, one in told.items()}

    @property
    def task(self) -> TaskReader | None:
        """Return the source of the task facts, or None if the case has none."""
        return None if self.facts is None else self.facts.read


class CasesFile(_Strict):
    """One file in tests/. ``tools``, with their ``submissions``, are added to the catalog for the cases only."""

    tools: list[Any] = []
    submissions: list[Any] = []
    cases: Annotated[list[BundleCase], Field(max_length=10_000)]


def read_cases(
    documents: Iterable[Document],
    levels: tuple[str, ...],
    catalog: frozenset[str],
    budgets: frozenset[str],
    classes: frozenset[str],
) -> tuple[tuple[BundleCase, ...], dict[str, CatalogTool]]:
    """Read every case and the tools that only the cases define.

    Raises:
        BundleError: a file is malformed, a name is used twice, or a budget or class does not exist.
    """
    cases: list[BundleCase] = []
    tools: dict[str, CatalogTool] = {}
    names: set[str] = set()
    for document in documents:
        parsed = document.parse(CasesFile)
        for index, case in enumerate(parsed.cases):
            if case.name in names:
                raise document.error(("cases", index), f"repeats the case {case.name!r}")
            for budget in case.usage:
                if budget not in budgets:
                    raise document.error(("cases", index, "usage", budget), f"unknown budget {budget!r}")
            for name in case.approvals:
                if name not in classes:
                    raise document.error(("cases", index, "approvals", name), f"unknown class {name!r}")
            names.add(case.name)
            cases.append(case)
        own = read_catalog(document.only("tools", "submissions"), levels) if parsed.tools else {}
        for name, tool in own.items():
            if name in catalog or name in tools:
                raise document.error(("tools",), f"repeats the tool {name!r}")
            tools[name] = tool
    return tuple(cases), tools


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one case; ``differences`` is empty if it passed."""

    name: str
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return True if the result matches the expectation."""
        return not self.differences


def compare(expected: Expectation, actual: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the differences between the actual and the expected decision."""
    wanted: dict[str, Any] = {"decision": expected.decision, "approval_class": expected.approval_class}
    if expected.policies is not None:
        wanted["policies"] = sorted(expected.policies)
    if expected.reason is not None:
        wanted["reason"] = expected.reason
    return tuple(
        f"{name}: {actual[name]} instead of {value}" for name, value in wanted.items() if actual[name] != value
    )
