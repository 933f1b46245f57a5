"""Which item of a list the user picked by its order: the latest, the largest, the cheapest."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from phylactery_riskgate.domain.tasks.languages import HIGHEST, LOWEST, NEWEST, OLDEST

if TYPE_CHECKING:
    from phylactery_riskgate.domain.tasks.index import Value


def picked(values: Sequence[Value], parents: Sequence[int], said: Mapping[str, object]) -> Iterator[int]:
    """Answers the items that stand first or last by an orderable field, where the words ask for such a one."""
    high = not HIGHEST.isdisjoint(said)
    low = not LOWEST.isdisjoint(said)
    new = not NEWEST.isdisjoint(said)
    old = not OLDEST.isdisjoint(said)
    if not (high or low or new or old):
        return
    columns: dict[tuple[int, str], list[Value]] = defaultdict(list)
    for value in values:
        if value.kind[0] == "o":
            columns[parents[value.item], value.field].append(value)
    for column in columns.values():
        numbers = {value.item: _number(value.norm) for value in column}
        if all(one is not None for one in numbers.values()):
            keys: dict[int, Decimal | str] = {item: one for item, one in numbers.items() if one is not None}
            top, bottom = high, low
        else:
            keys = {value.item: value.norm for value in column}
            top, bottom = new, old
        if top:
            yield from _at(keys, max(keys.values()))
        if bottom:
            yield from _at(keys, min(keys.values()))


def _at(keys: Mapping[int, Decimal | str], best: Decimal | str) -> Iterator[int]:
    return (item for item, key in keys.items() if key == best)


def _number(norm: str) -> Decimal | None:
    try:
        return Decimal(norm)
    except InvalidOperation:
        return None
