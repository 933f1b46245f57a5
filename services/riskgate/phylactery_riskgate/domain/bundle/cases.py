"""The cases a bundle brings: a call and a user, and the decision they must get."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.documents import Document
from phylactery_riskgate.domain.intent.model import FROM_TEXT, NOBODY, RULES, UNSHOWN, Evidence, TaskFacts
from phylactery_riskgate.domain.model import BoundCall, CatalogTool, Counters, Pathway
from phylactery_riskgate.domain.pointers import pointer
from phylactery_riskgate.domain.policy.evidence import MAX_INTENT, MAX_ORIGIN, MAX_SIGNALS, TaskReader
from phylactery_riskgate.domain.policy.usage import Charge, units_of

_CASE = "the case"
"""Where everything of a case was found."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CaseUser(_Strict):
    """Who asks; a delegated user's level is the one entities.json says."""

    id: str = "ana"
    tenant: str = "acme"
    level: str = "user"
    groups: list[str] = []
    delegated: bool = False


class CaseApprover(_Strict):
    """Who approves, as their own token describes them; entities.json may add a level and groups, or take it away."""

    id: Annotated[str, Field(min_length=1)]
    level: str = "user"
    groups: list[str] = []
    approver: bool = True


class Expectation(_Strict):
    """What must come out. ``policies`` and ``reason`` are compared only where they are written."""

    decision: Literal["ALLOW", "AUTH_REQUIRED", "BLOCKED"]
    approval_class: str | None = None
    policies: list[str] | None = None
    reason: str | None = None


def _exact(value: float) -> float:
    if units_of(value) is None:
        raise ValueError("an amount is not negative, and has at most four places after the point")
    return value


class CaseUsage(_Strict):
    """What a budget has counted before the call. By default every recipient of the call is new to it."""

    calls: Annotated[int, Field(ge=0)] = 0
    amount: Annotated[int | float, AfterValidator(_exact)] = 0
    recipients: Annotated[int, Field(ge=0)] = 0
    new_recipients: Annotated[int, Field(ge=0)] | None = None

    def counters(self, recipients: int) -> Counters:
        """Tell it as the records would, for a call with so many recipients."""
        new = recipients if self.new_recipients is None else self.new_recipients
        return Counters(self.calls, units_of(self.amount) or 0, self.recipients, new)


class CaseFacts(_Strict):
    """What the task of a call told: by default that nobody asked for it, and that its arguments come from nowhere.

    ``origin`` is the worst one; ``by`` names arguments whose own origin is another, each a top-level name.
    ``foreign`` is so with the worst origin, unless it is said; who understood a request are the rules.
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

    def read(self, _tool: CatalogTool, bound: BoundCall) -> TaskFacts:
        """Tell it as a task would."""
        if not self.shown:
            return UNSHOWN
        found = [Evidence(pointer((name,)), self.by.get(name, self.origin), _CASE) for name in bound.arguments]
        return TaskFacts(
            shown=True,
            intent=self.intent,
            intent_words=(),
            arguments=tuple(sorted(found, key=lambda one: (-one.origin, one.path))),
            worst=self.origin,
            signals=self.signals,
            signal_reasons=(FROM_TEXT,) if self.from_text else (),
            refused=self.refused,
            foreign=self.origin == MAX_ORIGIN if self.foreign is None else self.foreign,
            understood_by=self.understood_by or (RULES if self.intent == MAX_INTENT else NOBODY),
        )


class BundleCase(_Strict):
    """One case. ``usage`` says what budgets have counted, nothing where it does not name them.

    ``approved`` names classes that are taken for approved; ``approvals`` says who said yes to a class, which counts
    where they may and are enough. Without ``facts`` the call names no task.
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
        """Tell what the case says, as the records would."""
        told = {budget.name: self.usage.get(budget.name, CaseUsage()) for budget in tool.budgets}
        return {name: one.counters(len(charge.recipients)) for name, one in told.items()}

    @property
    def task(self) -> TaskReader | None:
        """What tells the facts of its task, None where it names none."""
        return None if self.facts is None else self.facts.read


class CasesFile(_Strict):
    """One file in tests/. ``tools`` are in the catalog of the cases alone."""

    tools: list[Any] = []
    cases: Annotated[list[BundleCase], Field(max_length=10_000)]


def read_cases(
    documents: Iterable[Document],
    levels: tuple[str, ...],
    catalog: frozenset[str],
    budgets: frozenset[str],
    classes: frozenset[str],
) -> tuple[tuple[BundleCase, ...], dict[str, CatalogTool]]:
    """Read every case and the tools only they know.

    Raises:
        BundleError: a file is not what it should be, a name is used twice, or a budget or class is not there.
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
                    raise document.error(("cases", index, "usage", budget), f"there is no budget {budget!r}")
            for name in case.approvals:
                if name not in classes:
                    raise document.error(("cases", index, "approvals", name), f"there is no class {name!r}")
            names.add(case.name)
            cases.append(case)
        for name, tool in read_catalog(document.only("tools"), levels).items() if parsed.tools else ():
            if name in catalog or name in tools:
                raise document.error(("tools",), f"repeats the tool {name!r}")
            tools[name] = tool
    return tuple(cases), tools


@dataclass(frozen=True, slots=True)
class CaseResult:
    """How one case went; ``differences`` is empty where it passed."""

    name: str
    differences: tuple[str, ...]

    @property
    def passed(self) -> bool:
        """Return whether what came out is what was expected."""
        return not self.differences


def compare(expected: Expectation, actual: Mapping[str, Any]) -> tuple[str, ...]:
    """List how the actual decision differs from the expected one."""
    wanted: dict[str, Any] = {"decision": expected.decision, "approval_class": expected.approval_class}
    if expected.policies is not None:
        wanted["policies"] = sorted(expected.policies)
    if expected.reason is not None:
        wanted["reason"] = expected.reason
    return tuple(
        f"{name}: {actual[name]} instead of {value}" for name, value in wanted.items() if actual[name] != value
    )
