"""The budgets of a bundle, parsed from riskgate.yaml: limits on calls within a time window.

Windows are rolling: at every moment a window reaches back ``window_seconds``. A call is counted when its permit is
redeemed (ADR 12), in every budget that covers its tool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from phylactery_riskgate.domain.documents import Document, Place
from phylactery_riskgate.domain.model import Budget, CatalogTool
from phylactery_riskgate.domain.policy.cedar_schema import action_groups, group_names
from phylactery_riskgate.domain.policy.usage import RESERVED, units_of

MAX_WINDOW_SECONDS = 31_622_400
MAX_COUNTED = 10_000
"""The maximum number of calls, and of recipients, that a budget counts under one key. More is refused, so that storage
is bounded even if the budget sets no limit."""

_Count = Annotated[int, Field(ge=1, le=MAX_COUNTED)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class LimitsEntry(_Strict):
    """The hard limits of a budget."""

    calls: _Count = MAX_COUNTED
    amount: Annotated[int | float, Field(ge=0)] | None = None
    recipients: _Count = MAX_COUNTED


class BudgetEntry(_Strict):
    """One budget. ``tools`` holds names of tools and groups of the catalog (effect:write)."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")]
    tools: Annotated[list[str], Field(min_length=1)]
    per: Annotated[list[Literal["tenant", "thread", "user", "tool"]], Field(min_length=1)]
    window_seconds: Annotated[int, Field(ge=1, le=MAX_WINDOW_SECONDS)]
    limits: LimitsEntry = LimitsEntry()


Budgets = Annotated[list[BudgetEntry], Field(max_length=32)]


def read_budgets(
    document: Document, entries: Iterable[BudgetEntry], tools: Mapping[str, CatalogTool], levels: tuple[str, ...]
) -> tuple[Budget, ...]:
    """Read the budgets; ``tools`` are all tools that a budget may name.

    Raises:
        BundleError: a budget names something that does not exist, or limits what a tool it covers does not declare.
    """
    budgets: dict[str, Budget] = {}
    for index, entry in enumerate(entries):
        place = ("budgets", index)
        if entry.name in RESERVED:
            raise document.error(
                (*place, "name"), f"{entry.name} is a fact of context.usage, name the budget otherwise"
            )
        if entry.name in budgets:
            raise document.error((*place, "name"), f"repeats the budget {entry.name}")
        for position, name in enumerate(entry.tools):
            if name not in tools and name not in group_names(levels):
                raise document.error(
                    (*place, "tools", position),
                    f"{name} is neither a tool of the catalog nor a group such as risk:high",
                )
        budgets[entry.name] = _budget(document, place, entry)
    for index, budget in enumerate(budgets.values()):
        for tool in tools.values():
            if _counts(budget, tool):
                _check_declared(document, ("budgets", index, "limits"), budget, tool)
    return tuple(budgets.values())


def counted(tools: Mapping[str, CatalogTool], budgets: Iterable[Budget]) -> dict[str, CatalogTool]:
    """Return the tools, each with the budgets that cover it."""
    every = tuple(budgets)
    return {
        name: replace(tool, budgets=tuple(budget for budget in every if _counts(budget, tool)))
        for name, tool in tools.items()
    }


def _counts(budget: Budget, tool: CatalogTool) -> bool:
    return tool.name in budget.tools or bool(action_groups(tool).intersection(budget.tools))


def _budget(document: Document, place: Place, entry: BudgetEntry) -> Budget:
    limits = entry.limits
    amount = None if limits.amount is None else units_of(limits.amount)
    if limits.amount is not None and amount is None:
        raise document.error(
            (*place, "limits", "amount"), "an amount has at most four places after the point, and 64 bits in all"
        )
    return Budget(
        name=entry.name,
        tools=tuple(entry.tools),
        per=tuple(name for name in ("thread", "user", "tool") if name in entry.per),
        window_seconds=entry.window_seconds,
        calls=limits.calls,
        amount=amount,
        recipients=limits.recipients,
    )


def _check_declared(document: Document, place: Place, budget: Budget, tool: CatalogTool) -> None:
    """Check that each tool declares what its budgets limit; otherwise every call of it would pass."""
    for name, limited, declared in (
        ("amount", budget.amount is not None, tool.amount),
        ("recipients", budget.recipients < MAX_COUNTED, tool.recipients),
    ):
        if limited and not declared:
            raise document.error(
                (*place, name),
                f"the budget {budget.name} limits {name}, and its tool {tool.name} declares none in tools.yaml",
            )
