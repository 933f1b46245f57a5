"""What RiskGate was shown of one task, ready to be asked: every look-up is by a normalised value, none is a scan."""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, NamedTuple
from zlib import crc32

from phylactery_riskgate.domain.tasks.folding import atoms
from phylactery_riskgate.domain.tasks.languages import SMALL
from phylactery_riskgate.domain.tasks.literals import dates_in_token, dates_of, numbers_in, yearless
from phylactery_riskgate.domain.tasks.picking import picked
from phylactery_riskgate.domain.tasks.reading import Piece, prints

_MAX_PLACES: Final = 64
_LONG_ENOUGH: Final = 3
_STRONG: Final = 8
_HALF: Final = 2
_EXTENSION: Final = 5
_COMMON: Final = 5


class Value(NamedTuple):
    """A value of a result: its kind and whether it is of a registry, the item and the field it stands in."""

    norm: str
    kind: str
    item: int
    field: str


@dataclass(frozen=True)
class Words:
    """The user's own words."""

    tokens: tuple[str, ...]
    breaks: frozenset[int]

    @cached_property
    def token_places(self) -> dict[str, list[int]]:
        """Where each token stands."""
        return _places(self.tokens)

    @cached_property
    def atoms(self) -> tuple[str, ...]:
        """The runs of letters and digits, in order."""
        return tuple(atom for token in self.tokens for atom in atoms(token))

    @cached_property
    def atom_places(self) -> dict[str, list[int]]:
        """Where each run stands."""
        return _places(self.atoms)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """What the numbers can mean."""
        return frozenset(one for token in self.tokens for one in numbers_in(token))

    @cached_property
    def dates(self) -> frozenset[str]:
        """The days that are named."""
        return frozenset(dates_of(self.tokens))

    @cached_property
    def literals(self) -> tuple[str, ...]:
        """Addresses and account numbers: values that can be told from words by their looks."""
        return tuple(dict.fromkeys(token for token in self.tokens if looks_literal(token)))

    def hold_tokens(self, wanted: Sequence[str]) -> bool:
        """Says whether whole values follow one another in the words."""
        return _follow(wanted, self.tokens, self.token_places)

    def hold_atoms(self, wanted: Sequence[str]) -> bool:
        """Says whether runs of letters and digits follow one another in the words."""
        return _follow(wanted, self.atoms, self.atom_places)

    def hold_date(self, date: str) -> bool:
        """Says whether a day is named, with its year or without any."""
        return date in self.dates or yearless(date) in self.dates


def looks_literal(token: str) -> bool:
    """Says whether a token is an address or an account number by its looks."""
    if "@" in token:
        return True
    parts = atoms(token)
    return len(parts) == 1 and len(token) >= _STRONG and token[-1].isdigit() and not token.isdigit()


def _places(tokens: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places = found.setdefault(token, [])
        if len(places) < _MAX_PLACES:
            places.append(place)
    return found


def _follow(wanted: Sequence[str], tokens: Sequence[str], places: dict[str, list[int]]) -> bool:
    if not wanted:
        return False
    size = len(wanted)
    target = tuple(wanted)
    return any(tuple(tokens[place : place + size]) == target for place in places.get(wanted[0], ()))


@dataclass(frozen=True)
class Result:
    """What one call answered."""

    tool: str
    call: str
    made: bool
    arguments: tuple[str, ...]
    parents: tuple[int, ...]
    values: tuple[Value, ...]
    prints: dict[int, frozenset[int]] = field(repr=False)

    @cached_property
    def by_norm(self) -> dict[str, list[Value]]:
        """The values by their normal form."""
        found: dict[str, list[Value]] = defaultdict(list)
        for value in self.values:
            found[value.norm].append(value)
        return dict(found)

    @cached_property
    def all_prints(self) -> frozenset[int]:
        """The prints of every item."""
        return frozenset().union(*self.prints.values())

    def items_with(self, wanted: Sequence[int]) -> Iterator[int]:
        """Answers the items whose text holds every print."""
        if wanted and self.all_prints.issuperset(wanted):
            for item, found in self.prints.items():
                if found.issuperset(wanted):
                    yield item

    def within(self, item: int) -> Iterator[int]:
        """Answers an item and all it stands in, the result itself left out."""
        while item > 0:
            yield item
            item = self.parents[item]


def _result(piece: Piece) -> Result:
    return Result(
        tool=piece["tool"],
        call=piece["call"],
        made=piece["made"],
        arguments=tuple(piece["a"]),
        parents=tuple(piece["i"]),
        values=tuple(Value(*value) for value in piece["v"]),
        prints={int(item): frozenset(found) for item, found in piece["p"].items()},
    )


def _words(pieces: Sequence[Piece]) -> Words:
    tokens: list[str] = []
    breaks: set[int] = set()
    for piece in pieces:
        breaks.add(len(tokens))
        breaks.update(len(tokens) + place for place in piece["b"])
        tokens.extend(piece["t"])
    return Words(tuple(tokens), frozenset(breaks))


class TaskIndex:
    """Everything shown of one task; unchangeable."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.words = _words([piece for piece in pieces if piece["k"] == "words"])
        self.results = tuple(_result(piece) for piece in pieces if piece["k"] == "result")
        self._pieces = tuple(pieces)

    def with_piece(self, piece: Piece) -> TaskIndex:
        """Answers the index with one more piece."""
        if piece["k"] == "words":
            return TaskIndex((*self._pieces, piece))
        more = copy.copy(self)
        more.__dict__ = {
            "words": self.words,
            "results": (*self.results, _result(piece)),
            "_pieces": (*self._pieces, piece),
        }
        return more

    @cached_property
    def bound(self) -> tuple[frozenset[int], ...]:
        """For every result, the items the user named or picked."""
        return tuple(frozenset(_bound(result, self.words)) for result in self.results)

    @cached_property
    def pointed(self) -> tuple[bool, ...]:
        """For every result, whether the user pointed at what was read."""
        return tuple(self._points(result) for result in self.results)

    @cached_property
    def used(self) -> frozenset[str]:
        """The values that calls were made with."""
        return frozenset(value for result in self.results for value in result.arguments)

    def is_bound(self, place: int, item: int) -> bool:
        """Says whether an item, or one it stands in, is one the user named."""
        bound = self.bound[place]
        return any(one in bound for one in self.results[place].within(item))

    def is_pointed(self, place: int, item: int) -> bool:
        """Says whether the user pointed to the text of an item."""
        return self.pointed[place] or self.is_bound(place, item)

    def _points(self, result: Result) -> bool:
        return any(self._named(value) for value in result.arguments)

    def _named(self, value: str) -> bool:
        date = next(dates_in_token(value), "")
        if date:
            return self.words.hold_date(date)
        telling = [atom for atom in atoms(value) if atom not in SMALL and not _is_extension(atom)]
        if any(len(atom) >= _LONG_ENOUGH for atom in telling):
            return all(atom in self.words.atom_places for atom in telling) or self._identifies(value)
        return self._identifies(value)

    def _identifies(self, value: str) -> bool:
        return any(
            one.kind[0] == "s" and self.is_bound(place, one.item)
            for place, result in enumerate(self.results)
            for one in result.by_norm.get(value, ())
        )


def _is_extension(atom: str) -> bool:
    return atom in {"txt", "docx", "doc", "xlsx", "xls", "pdf", "csv", "pptx", "md", "www", "com", "http", "https"}


def _bound(result: Result, words: Words) -> Iterator[int]:
    if result.made:
        yield from range(len(result.parents))
        return
    names = [value for value in result.values if value.kind[0] == "n" or "r" in value.kind or value.kind[0] == "s"]
    shared = _shared_atoms([value for value in names if value.kind[0] == "n"])
    for value in names:
        if _names(value, words, shared):
            yield value.item
    yield from picked(result.values, result.parents, words.token_places)


def _shared_atoms(names: Sequence[Value]) -> frozenset[str]:
    """Atoms so many names share that they tell none from another."""
    count: dict[str, int] = defaultdict(int)
    for value in names:
        for atom in set(value.norm.replace(" ", "-").split("-")):
            count[atom] += 1
    return frozenset(atom for atom, times in count.items() if times > _COMMON)


def _names(value: Value, words: Words, shared: frozenset[str]) -> bool:
    """Says whether the user's words hold a name: whole, or so much of it that it tells the thing from others."""
    if looks_literal(value.norm):
        return value.norm in words.token_places
    if value.kind[0] != "n":
        return False
    parts = [atom for token in value.norm.split(" ") for atom in atoms(token)]
    if len(parts) > 1 and _is_extension(parts[-1]):
        parts = parts[:-1]
    telling = [atom for atom in parts if atom not in SMALL and len(atom) >= _LONG_ENOUGH]
    if telling and words.hold_atoms(parts):
        return True
    said = [atom for atom in telling if atom in words.atom_places and atom not in shared]
    return len(said) * _HALF >= len(telling) and any(len(atom) > _LONG_ENOUGH for atom in said)


def text_prints(tokens: Sequence[str]) -> list[int]:
    """Answers the prints a text must have for these tokens to follow one another in it."""
    return list(prints(tokens))


def day_print(date: str) -> int:
    """Answers the print of a day."""
    return crc32(f"d:{date}".encode())


def numbers_of(values: Iterable[Any]) -> list[str]:
    """Answers the values that are numbers."""
    return [value for value in values if numbers_in(value)]
