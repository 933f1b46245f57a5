"""Amounts as people say them: what a tool takes in hundredths is said in whole units, 2000 cents as 20."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from phylactery_riskgate.domain import pointers
from phylactery_riskgate.domain.model import CatalogTool, Json

CENTS: Final = "cents"


def in_whole_units(tool: CatalogTool, value: Any) -> Any:
    """Return the value of a tool's amount in whole units: an int, or a Decimal where it has cents.

    A part of a cent is no amount, and None. What is no number, or not in hundredths, is returned as it is.
    """
    if tool.amount_unit != CENTS or isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        return value
    cents = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not cents.is_finite() or cents != cents.to_integral_value():
        return None
    whole = cents.scaleb(-2)
    return int(whole) if whole == whole.to_integral_value() else whole


def as_said(tool: CatalogTool, arguments: Json) -> Json:
    """Return the arguments of a call with the amount as people say it, so that "20 euros" are 2000 cents.

    Only an amount in hundredths is changed. One that is none stays as it is, and its call is refused.
    """
    if tool.amount_unit != CENTS or not tool.amount:
        return arguments
    found = in_whole_units(tool, pointers.value_at(arguments, tool.amount))
    if found is None or not isinstance(found, int | Decimal):
        return arguments
    return _with(arguments, pointers.parse(tool.amount), found if isinstance(found, int) else float(found))


def _with(value: Mapping[str, Any], place: tuple[str, ...], new: Any) -> dict[str, Any]:
    first, *rest = place
    return {**value, first: _with(value[first], tuple(rest), new) if rest else new}
