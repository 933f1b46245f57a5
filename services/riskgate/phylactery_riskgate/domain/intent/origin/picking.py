"""Selection of list items by an order the user mentioned: the latest, the largest, the cheapest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from phylactery_riskgate.domain.intent.origin.naming import Value


def picked(values: Sequence[Value], parents: Sequence[int], orders: Collection[str]) -> Iterator[int]:
    """Return the items that are first or last by an orderable field, if the words pick by such an order."""
    if not orders:
        return
    columns: dict[tuple[int, str], list[Value]] = defaultdict(list)
    for value in values:
        if value.kind[0] == "o":
            columns[parents[value.item], value.field].append(value)
    for column in columns.values():
        numbers = {value.item: number for value in column if (number := _number(value.norm)) is not None}
        if len(numbers) == len({value.item for value in column}):
            yield from _ends(numbers, top="high" in orders, bottom="low" in orders)
        else:
            yield from _ends({value.item: value.norm for value in column}, top="new" in orders, bottom="old" in orders)


def _ends(keys: Mapping[int, Decimal] | Mapping[int, str], *, top: bool, bottom: bool) -> Iterator[int]:
    ends = [choose(keys.values()) for choose, wanted in ((max, top), (min, bottom)) if wanted]
    return (item for item, key in keys.items() if key in ends)


def _number(norm: str) -> Decimal | None:
    try:
        number = Decimal(norm)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
