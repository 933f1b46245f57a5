"""Selection of the items of a result that the user named, or picked by order.

A name counts if it occurs whole, or in a part large enough to distinguish one item from the others. If the user named
by several fields, the items that match all of them are meant, if there are any.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Final, NamedTuple

from phylactery_riskgate.domain.intent.folding import atoms
from phylactery_riskgate.domain.intent.languages import (
    BOUNDS,
    CLOCKS,
    DAYS,
    EXTENSIONS,
    PRICES,
    SHORT_WORDS,
    SMALL,
    UNITS,
    ZONES,
)
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token, numbers_in
from phylactery_riskgate.domain.intent.words import Words, is_value, looks_literal

_TELLING: Final = 3
"""The minimum number of letters of a distinguishing atom."""
_WHOLE: Final = 2.0
_HALF: Final = 0.5
_FEW: Final = 2
"""The maximum number of items with one amount for the amount to name them."""
_DAY, _CLOCK = r"\d{4}[-/.]\d\d(?:[-/.]\d\d)?", r"\d\d:\d\d(?::\d\d(?:\.\d+)?)?"
_TIME: Final = re.compile(rf"({_DAY}(?:[ t]{_CLOCK})?|{_CLOCK})( ?z|[+-]\d\d:?\d\d)?")
_WHOLE_DAY: Final = re.compile(r"\d{4}[-/.]\d\d[-/.]\d\d")
_OF_DAY: Final = re.compile(rf"{_CLOCK}(?: ?z|[+-]\d\d:?\d\d)?")
_HOUR: Final = re.compile(r"1?\d|2[0-3]")
_WORD: Final = re.compile(r"[A-Z]?[a-z]+")
_SIZES, _TIMES = frozenset({"high", "low"}), frozenset({"new", "old"})
"""The ends by which numbers are picked, and those by which times are."""
_DIGIT: Final = re.compile(r"\d")
_FIGURE: Final = re.compile(r"[\d.,'\s-]+")


class Value(NamedTuple):
    """A value of a result: its kind (with "r" appended for a registry), its item and its field.

    ``written`` is its spelling, if that is more than its tokens.
    """

    norm: str
    kind: str
    item: int
    field: str
    written: str = ""

    @property
    def registry(self) -> bool:
        """Return True if it is from a registry."""
        return self.kind.endswith("r")

    @property
    def is_written(self) -> bool:
        """Return True if it is a name of several words, as people write them, and of no registry."""
        return " " in self.norm and self.kind in {"n", "p"}


def telling(parts: Iterable[str]) -> list[str]:
    """Return the atoms that can name something: not one or two letters, nor a file extension."""
    return [
        atom
        for atom in parts
        if atom not in SMALL and atom not in EXTENSIONS and (len(atom) >= _TELLING or atom.isdigit())
    ]


_Columns = Mapping[tuple[int, str], Sequence[Value]]
"""The values of each field, by the item above theirs and the field's name."""


class Named(NamedTuple):
    """The items the user named, and those at an end of an order they mentioned.

    Which of two things an order applies to is unknown here: if no item fits both a name and an order, they are two
    things.
    """

    items: frozenset[int] = frozenset()
    picks: frozenset[int] = frozenset()


def named_items(values: Sequence[Value], parents: Sequence[int], words: Words) -> Named:
    """Return the items that the words name."""
    fields: dict[str, dict[int, float]] = defaultdict(dict)
    for value in values:
        strong = strength(value, words)
        if strong:
            told = fields[value.field]
            told[value.item] = max(strong, told.get(value.item, 0.0))
    chosen = [found for told in fields.values() if (found := _best(told))]
    chosen += _by_amount(values, words)
    ordered = picked(values, parents, words.orders, prices=words.prices)
    named = _meant(chosen)
    return Named(_dated(named & ordered or named, values, words), ordered if named.isdisjoint(ordered) else frozenset())


def _best(told: Mapping[int, float]) -> frozenset[int]:
    best = max(told.values())
    items = frozenset(item for item, strength in told.items() if strength == best)
    return items if best >= _WHOLE or len(items) == 1 else frozenset()


def _meant(chosen: Sequence[frozenset[int]]) -> frozenset[int]:
    if not chosen:
        return frozenset()
    return frozenset.intersection(*chosen) or frozenset().union(*chosen)


def strength(value: Value, words: Words) -> float:
    """Return 0 for a value that names nothing, up to 1 for a part that the words contain, 2 for the whole value."""
    if looks_literal(value.norm):
        return _WHOLE if value.norm in words.token_places or value.norm in words.joined else 0
    if value.kind[0] != "n":
        return 0
    if is_value(value.norm) and value.norm in words.token_places:
        return _WHOLE
    parts = [atom for token in value.norm.split(" ") for atom in atoms(token)]
    while len(parts) > 1 and parts[-1] in EXTENSIONS:
        parts = parts[:-1]
    tells = telling(parts)
    if tells and words.hold_plain_atoms(parts):
        return _WHOLE
    said = {atom for atom in tells if atom not in SHORT_WORDS and atom in words.plain_places}
    part = len(said) / len(set(tells)) if tells else 0
    return part if part >= _HALF or len(said) >= _FEW else 0


def _by_amount(values: Sequence[Value], words: Words) -> list[frozenset[int]]:
    found: dict[str, set[int]] = defaultdict(set)
    for value in values:
        if value.norm in words.money and value.kind[0] == "o":
            found[value.norm].add(value.item)
    return [frozenset(items) for items in found.values() if len(items) <= _FEW]


def _dated(named: frozenset[int], values: Sequence[Value], words: Words) -> frozenset[int]:
    """Return only the items on a day the user named, if there are any: of two meetings of one name, that day's."""
    if len(named) < _FEW or not words.dates:
        return named
    that_day = frozenset(
        value.item
        for value in values
        if value.item in named
        and value.kind[0] in "so"
        and any(words.hold_date(date) for token in value.norm.split(" ") for date in dates_in_token(token))
    )
    return that_day or named


def picked(values: Sequence[Value], parents: Sequence[int], orders: frozenset[str], *, prices: bool) -> frozenset[int]:
    """Return the items that are first or last by an orderable field, if the words pick by such an order.

    If they pick by ``prices``, only such fields are compared: the cheap one is not the one in short supply. Nothing is
    picked if one of the fields to be compared proves nothing: something lacks it, units differ, a number has two
    readings, or times are not written in order (9:30 and 10:00) or are of places with other clocks. A day and a time of
    day that make one moment are one field.
    """
    if not orders:
        return frozenset()
    columns: dict[tuple[int, str], list[Value]] = defaultdict(list)
    fields: dict[int, set[str]] = defaultdict(set)
    units: dict[int, str] = defaultdict(str)
    zones: dict[int, str] = defaultdict(str)
    for value in values:
        fields[value.item].add(value.field)
        in_zone = not ZONES.isdisjoint(_words_of(value.field))
        if in_zone or value.field in UNITS:
            (zones if in_zone else units)[value.item] += f"{value.field} {value.norm} "
        elif value.kind[0] == "o":
            columns[parents[value.item], value.field].append(value)
    kinds: dict[int, set[frozenset[str]]] = defaultdict(set)
    for item, own in fields.items():
        if parents[item] != item:
            kinds[parents[item]].add(frozenset(own))
    found = set[int]()
    for (parent, name), column in (columns if orders - _TIMES else _moments(columns)).items():
        if prices and PRICES.isdisjoint(name.split("_")):
            continue
        numbers = {value.item: number for value in column if (number := _number(value.norm)) is not None}
        counts = len(numbers) == len({value.item for value in column})
        if orders.isdisjoint(_SIZES if counts else _TIMES) and (counts or not numbers or orders.isdisjoint(_SIZES)):
            continue
        alike = {_measure(value, units if counts else zones, counts=counts) for value in column}
        if len(alike) > 1 or None in alike or _lacks(kinds[parent], name):
            return frozenset()
        if counts:
            found.update(_ends(numbers, top="high" in orders, bottom="low" in orders))
        else:
            found.update(
                _ends({value.item: value.norm for value in column}, top="new" in orders, bottom="old" in orders)
            )
    return frozenset(found)


def _measure(value: Value, measures: Mapping[int, str], *, counts: bool) -> tuple[str, str] | None:
    """Return what values must have in common to be compared; None for a time that is not written in order."""
    shape = _FIGURE.sub("", value.written) if counts else _shape(value.norm)
    return (measures.get(value.item, ""), shape) if counts or shape else None


def _moments(columns: _Columns) -> _Columns:
    """Return the columns with a day and a time of day as one, where their names say that they are of one moment.

    Each item must have one of either. What is joined with nothing is compared by itself.
    """
    joined, used = dict(columns), set[tuple[int, str]]()
    by_rest: dict[tuple[int, frozenset[str]], list[tuple[int, str]]] = defaultdict(list)
    for key, column in columns.items():
        words = _words_of(key[1])
        if not words.isdisjoint(DAYS) and all(_WHOLE_DAY.fullmatch(value.norm) for value in column):
            by_rest[key[0], words - DAYS].append(key)
    for key, column in columns.items() if by_rest else ():
        words = _words_of(key[1])
        if words.isdisjoint(CLOCKS | BOUNDS):
            continue
        rest = words - CLOCKS
        days = by_rest.get((key[0], rest)) or (by_rest.get((key[0], frozenset())) if rest <= BOUNDS else None) or ()
        clocks = {value.item: clock for value in column if (clock := _clock(value, key[1]))}
        for day in days if len(days) == 1 else ():
            of_day = {value.item: value for value in columns[day]}
            if clocks.keys() == of_day.keys() and len(clocks) == len(column) == len(columns[day]):
                joined[key] = [of_day[item]._replace(norm=f"{of_day[item].norm} {clocks[item]}") for item in clocks]
                used.add(day)
    return {key: column for key, column in joined.items() if key not in used}


def _clock(value: Value, name: str) -> str:
    """Return a time of day as it is written behind a day; a number is one only if the field says so."""
    if _OF_DAY.fullmatch(value.norm):
        return value.norm
    hour = _HOUR.fullmatch(value.norm) and not CLOCKS.isdisjoint(_words_of(name))
    return f"{value.norm:0>2}:00" if hour else ""


def _words_of(name: str) -> frozenset[str]:
    """Return the words of a field's name: start_time, startTime."""
    return frozenset(word.lower() for word in _WORD.findall(name))


def _lacks(kinds: Collection[frozenset[str]], name: str) -> bool:
    """Return True if something lacks a field that its like has: it may be the cheapest.

    What has a field that none of them has is of another list.
    """
    having = [fields for fields in kinds if name in fields]
    return any(fields <= one for fields in kinds if name not in fields for one in having)


def _shape(norm: str) -> str:
    """Return how a time is written if it sorts as text: those of one shape do, year first. Empty for anything else."""
    found = _TIME.fullmatch(norm)
    return _DIGIT.sub("0", found[1]) + (found[2] or "") if found else ""


def _ends(keys: Mapping[int, Decimal] | Mapping[int, str], *, top: bool, bottom: bool) -> Iterator[int]:
    ends = [choose(keys.values()) for choose, wanted in ((max, top), (min, bottom)) if wanted]
    return (item for item, key in keys.items() if key in ends)


def _number(norm: str) -> Decimal | None:
    """Return a number that can be read in one way only: 1.234 may be a thousand and some."""
    if len(numbers_in(norm)) > 1:
        return None
    try:
        number = Decimal(norm)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None
