"""What one call would add to the budgets that cover its tool, and the usage facts for policies.

Amounts are integers in ten-thousandths, the smallest unit of Cedar's decimal, so that sums are never rounded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from phylactery_riskgate.domain.facts.amounts import in_whole_units
from phylactery_riskgate.domain.facts.types import COUNT, Field, Kind, RecordOf, Scalar
from phylactery_riskgate.domain.model import BoundCall, Budget, CatalogTool, Counters
from phylactery_riskgate.domain.pointers import value_at

PLACES = 4
MAX_AMOUNT = 2**63 - 1
"""The largest amount, or sum of amounts, that can be passed to a policy."""
MAX_RECIPIENTS = 1_000
"""The maximum number of recipients of one call that are counted; a call with more is blocked."""

UNDO_FAILED, LINE_OWED = "undo_failed", "line_owed"
"""What a reader returns beside the budgets, with any counters, if it is so: the undo of the tool failed in this tenant,
or the user was not told of an effect of low stakes in another run."""
LINE_DELIVERED = "line_delivered"
RESERVED = frozenset({UNDO_FAILED, LINE_OWED, LINE_DELIVERED})
"""Names that no budget may have."""

_NUMBER, _AMOUNT, _BOOL = COUNT, Scalar(Kind.DECIMAL, low=Decimal(0)), Scalar(Kind.BOOL)


@dataclass(frozen=True, slots=True)
class Charge:
    """What one call adds: an amount in ten-thousandths of a currency, and its recipients without duplicates."""

    amount: int
    currency: str
    recipients: tuple[str, ...]


UsageReader = Callable[[CatalogTool, Charge], Mapping[str, Counters]]
"""A function that returns what every budget of a tool has counted so far, by the budget's name, and UNDO_FAILED or
LINE_OWED with it."""


class NotCountableError(Exception):
    """A call that cannot be counted; gives the reason's code and the place, never the value."""

    def __init__(self, code: str, path: str) -> None:
        super().__init__(code)
        self.code = code
        self.path = path


def charge_of(tool: CatalogTool, bound: BoundCall) -> Charge:
    """Return what a call adds. A negative amount is refused, as it would replenish a budget.

    Raises:
        NotCountableError: the amount or its currency is missing, the amount is negative or not exact, or there are too
            many recipients.
    """
    amount = amount_of(tool, bound) if tool.amount else 0
    currency = currency_of(tool, bound)
    if amount is None and tool.amount_unit == "unknown" and all(one.amount is None for one in tool.budgets):
        amount = 0  # nothing sums it; where a limit does, what nobody can count is over it
    if amount is None or currency is None:
        raise NotCountableError("AMOUNT_NOT_COUNTABLE", tool.amount if amount is None else tool.currency)
    recipients: dict[str, None] = {}
    for text in tool.recipients:
        value = value_at(bound.arguments, text)
        recipients |= dict.fromkeys(value if isinstance(value, list) else [] if value is None else [value])
        if len(recipients) > MAX_RECIPIENTS:
            raise NotCountableError("RECIPIENTS_NOT_COUNTABLE", text)
    return Charge(amount, currency, tuple(recipients))


def amount_of(tool: CatalogTool, bound: BoundCall) -> int | None:
    """Return the amount of a call in ten-thousandths of its currency, None if that is not known.

    It is not known where there is none, where the unit is not, or where it is no amount: negative, not exact, too
    large, a part of a cent.
    """
    if not tool.amount or tool.amount_unit == "unknown":
        return None
    return units_of(in_whole_units(tool, value_at(bound.arguments, tool.amount)))


def currency_of(tool: CatalogTool, bound: BoundCall) -> str | None:
    """Return the currency of a call's amount, empty if none is said, None if an optional argument leaves it out."""
    if not tool.currency:
        return tool.amount_currency
    found = value_at(bound.arguments, tool.currency)
    return found if isinstance(found, str) else None


def units_of(value: Any) -> int | None:
    """Return a number in ten-thousandths, or None if it is not countable."""
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return None
    exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not 0 <= exact <= Decimal(MAX_AMOUNT).scaleb(-PLACES):
        return None
    units = exact.scaleb(PLACES)
    return int(units) if units == units.to_integral_value() else None


def amount_text(units: int) -> str:
    """Return an amount as people write it, for records: "12.5"."""
    text = f"{units // 10**PLACES}.{units % 10**PLACES:0{PLACES}d}"
    return text.rstrip("0").removesuffix(".")


def read_amount(text: str) -> int:
    """Parse the result of amount_text.

    Raises:
        ValueError: it is not an amount.
    """
    try:
        units = units_of(Decimal(text))
    except InvalidOperation:
        units = None
    if units is None:
        raise ValueError("no amount")
    return units


@dataclass(frozen=True, slots=True)
class Usage:
    """A tool's budget usage before one call, the limit ``exceeded`` per budget, and the facts for policies."""

    before: Mapping[str, Counters] = field(default_factory=dict)
    exceeded: Mapping[str, str] = field(default_factory=dict)
    value: Mapping[str, Any] = field(default_factory=dict)

    @property
    def undo_failed(self) -> bool:
        """Return True if the tool does not take back what it did."""
        return UNDO_FAILED in self.before


NO_USAGE = Usage(value={UNDO_FAILED: False, LINE_DELIVERED: True})
"""The usage facts of a tool that no budget covers, and that takes back what it does."""


def read_usage(tool: CatalogTool, bound: BoundCall, reader: UsageReader | None, *, asked: bool = False) -> Usage:
    """Read what budgets have counted and add the call.

    Nothing is read for a tool that no budget covers, unless its undo or the line of the last turn is ``asked`` for.

    Raises:
        NotCountableError: the call cannot be counted, its sum cannot be represented, or the usage is unknown.
    """
    _require_amount(tool, bound)
    if not tool.budgets and (reader is None or not asked):
        return NO_USAGE
    if reader is None:
        raise NotCountableError("USAGE_UNKNOWN", "")
    charge = charge_of(tool, bound)
    before = reader(tool, charge)
    exceeded: dict[str, str] = {}
    value: dict[str, Any] = {UNDO_FAILED: UNDO_FAILED in before, LINE_DELIVERED: LINE_OWED not in before}
    for budget in tool.budgets:
        counted = before[budget.name]
        after = _with_charge(tool, counted, charge)
        value[budget.name] = {
            **_counters(counted),
            "new_recipients": counted.new_recipients,
            "new_recipient": counted.new_recipients > 0,
            "after": _counters(after),
        }
        limit = _exceeded(budget, after)
        if limit:
            exceeded[budget.name] = limit
    return Usage(before, exceeded, value)


def is_over(
    tool: CatalogTool, bound: BoundCall, before: Sequence[tuple[CatalogTool, BoundCall]], reader: UsageReader
) -> bool:
    """Return True if a budget of a tool would not cover a call after others have run, or that cannot be told.

    Recipients of the others count as new ones unless this call has them, too: that may say over where it is not.
    """
    try:
        charge = charge_of(tool, bound)
        counted = reader(tool, charge)
        for budget in tool.budgets:
            after = _with_charge(tool, counted[budget.name], charge)
            for other, call in before:
                if budget.name not in {one.name for one in other.budgets} or ("tool" in budget.per and other != tool):
                    continue
                more = charge_of(other, call)
                amount = after.amount + (more.amount if more.currency == charge.currency else 0)
                reached = after.recipients + len(set(more.recipients) - set(charge.recipients))
                after = Counters(after.calls + 1, amount, reached, 0)
            if _exceeded(budget, after):
                return True
    except NotCountableError:
        return True
    return False


def _require_amount(tool: CatalogTool, bound: BoundCall) -> None:
    """Check that an amount in hundredths is one, budget or not: a part of a cent is none, and none is negative.

    No words can be held against it, and what the tool would make of it is not known. Raise NotCountableError.
    """
    if tool.amount_unit != "cents" or value_at(bound.arguments, tool.amount) is None:
        return
    if amount_of(tool, bound) is None:
        raise NotCountableError("AMOUNT_NOT_COUNTABLE", tool.amount)


def _with_charge(tool: CatalogTool, before: Counters, charge: Charge) -> Counters:
    amount = before.amount + charge.amount
    if amount > MAX_AMOUNT:
        raise NotCountableError("AMOUNT_NOT_COUNTABLE", tool.amount)
    return Counters(before.calls + 1, amount, before.recipients + before.new_recipients, 0)


def _exceeded(budget: Budget, after: Counters) -> str:
    """Return the first limit of a budget that is exceeded, or an empty string."""
    limits = {"calls": budget.calls, "amount": budget.amount, "recipients": budget.recipients}
    return next((name for name, limit in limits.items() if limit is not None and getattr(after, name) > limit), "")


def _counters(counted: Counters) -> dict[str, Any]:
    amount = Decimal(counted.amount).scaleb(-PLACES)
    return {"calls": counted.calls, "amount": amount, "recipients": counted.recipients}


def usage_type(budgets: Iterable[Budget]) -> RecordOf:
    """Return the type of ``context.usage`` for a tool: what is known of its undo, and a record for each budget."""
    after = _record(calls=_NUMBER, amount=_AMOUNT, recipients=_NUMBER)
    budget = _record(
        calls=_NUMBER, amount=_AMOUNT, recipients=_NUMBER, new_recipients=_NUMBER, new_recipient=_BOOL, after=after
    )
    return _record(**{UNDO_FAILED: _BOOL, LINE_DELIVERED: _BOOL}, **{one.name: budget for one in budgets})


def _record(**fields: Scalar | RecordOf) -> RecordOf:
    return RecordOf({name: Field(fact, required=True) for name, fact in fields.items()})
