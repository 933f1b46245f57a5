"""What RiskGate was shown of one task, ready to be asked: every look-up is by a normalised value, none is a scan."""

from __future__ import annotations

import copy
import re
from array import array
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, starmap
from typing import Final

from phylactery_understanding.interpretation import Interpretation

from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.folding import atoms
from phylactery_riskgate.domain.intent.languages import QUANTIFIERS
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token
from phylactery_riskgate.domain.intent.origin.naming import Named, Value, named_items, telling
from phylactery_riskgate.domain.intent.origin.prints import prints, triples
from phylactery_riskgate.domain.intent.words import Piece, Words, all_words, is_value, looks_literal

LOOK: Final = "file_info"
"""The tool by which an executor shows that a file exists."""
PASTED: Final = "what the user pasted"
_READ_ON: Final = 3
"""How often a text may lead to the next."""
_LONG_NUMBER: Final = 6
_NO_PRINTS: Final[frozenset[int]] = frozenset()
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


@dataclass(frozen=True)
class Result:
    """What one call answered, beside the words of the task; ``made`` says that the call changed something.

    ``unproven`` says that nothing is known of a run of it: then it has neither arguments nor values that are believed.
    """

    words: Words = field(repr=False)
    tool: str
    made: bool
    arguments: tuple[str, ...]
    parents: tuple[int, ...]
    values: tuple[Value, ...]
    prints: dict[int, frozenset[int]] = field(repr=False)
    unproven: bool = False
    triples: dict[int, Sequence[int]] = field(default_factory=dict, repr=False)

    @computed
    def by_norm(self) -> dict[str, list[Value]]:
        """The values by their normal form, and those written in groups also as one.

        Of values that say the same one is kept: a list may hold one value a thousand times.
        """
        found: dict[str, dict[tuple[object, ...], Value]] = defaultdict(dict)
        for value in self.values:
            place = (value.item in self.names, value.item in self.picks, self.parents[value.item], value.item == 0)
            same = (value.kind, value.field, value.written, *place)
            found[value.norm].setdefault(same, value)
            if " " in value.norm and "@" not in value.norm and looks_literal(value.norm.replace(" ", "")):
                found[value.norm.replace(" ", "")].setdefault(same, value)
        return {norm: list(values.values()) for norm, values in found.items()}

    @computed
    def size(self) -> int:
        """How many values and prints there are."""
        return len(self.values) + sum(map(len, self.prints.values())) + sum(map(len, self.triples.values()))

    @computed
    def numbers(self) -> tuple[tuple[Value, float], ...]:
        """The values that are numbers, those of free text left out."""
        return tuple(
            (value, float(value.norm))
            for value in self.values
            if value.kind[0] != "f" and _NUMBER.fullmatch(value.norm) is not None
        )

    @computed
    def private(self) -> tuple[Value, ...]:
        """The values that must not leave unasked."""
        return tuple(value for value in self.values if value.kind[0] == "p")

    @computed
    def all_prints(self) -> frozenset[int]:
        """The prints of every item."""
        return frozenset().union(*self.prints.values()) if len(self.prints) != 1 else next(iter(self.prints.values()))

    def first_with(self, wanted: Sequence[int], among: frozenset[int]) -> int | None:
        """Return an item whose text holds every print, one of some if there is such, None if there is none."""
        if not wanted or not self.all_prints.issuperset(wanted):
            return None
        inside = (item for item in among if self.prints.get(item, _NO_PRINTS).issuperset(wanted))
        return next(chain(inside, self.items_with(wanted)), None)

    def items_with(self, wanted: Sequence[int]) -> Iterator[int]:
        """Return the items whose text holds every print."""
        if wanted and self.all_prints.issuperset(wanted):
            for item, found in self.prints.items():
                if found.issuperset(wanted):
                    yield item

    def within(self, item: int) -> Iterator[int]:
        """Return an item and all it stands in."""
        while item >= 0:
            yield item
            item = self.parents[item]

    def is_whole(self, value: Value) -> bool:
        """Return whether a value is of the answer as a whole, and none of a list."""
        return value.item == 0 and self._sizes[value.field] == 1

    @computed
    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = defaultdict(int)
        for value in self.values:
            if value.item == 0:
                sizes[value.field] += 1
        return sizes

    @computed
    def named(self) -> Named:
        """The items the user named or picked."""
        return named_items(self.values, self.parents, self.words)

    @computed
    def names(self) -> frozenset[int]:
        """The items the user named, and all that stands in them."""
        return self._below(self.named.items)

    @computed
    def picks(self) -> frozenset[int]:
        """The items that stand at an end of an order the user spoke of, and all that stands in them."""
        return self._below(self.named.picks)

    @computed
    def meant(self) -> frozenset[int]:
        """Both."""
        return self.names | self.picks

    def _below(self, items: frozenset[int]) -> frozenset[int]:
        if not items:
            return items
        return frozenset(item for item in range(len(self.parents)) if any(one in items for one in self.within(item)))

    @computed
    def argument_prints(self) -> tuple[list[int], ...]:
        """The prints of the arguments that could name what to read."""
        return tuple(
            prints(value.split(" "))
            for value in self.arguments
            if not value.isdigit() and any(is_value(token) or telling(atoms(token)) for token in value.split(" "))
        )

    @computed
    def is_asked_for(self) -> bool:
        """Return whether it was read with what the user said."""
        return self.tool is PASTED or (not self.made and any(map(self._is_said, self.arguments)))

    def _is_said(self, value: str) -> bool:
        if value.isdigit() and len(value) < _LONG_NUMBER:
            return False
        date = next(dates_in_token(value), "")
        if date:
            return self.words.hold_date(date)
        tokens = value.split(" ")
        if any(map(is_value, tokens)) and self.words.hold_tokens(tokens):
            return True
        tells = telling(atom for token in tokens for atom in atoms(token))
        said = bool(tells) and all(atom in self.words.atom_places for atom in tells)
        return said and not all(atom.isdigit() for atom in tells)


def _result(piece: Piece, words: Words) -> Result:
    return Result(
        words=words,
        tool=piece["tool"],
        made=piece["made"],
        arguments=tuple(piece["a"]),
        parents=tuple(piece["i"]),
        values=tuple(starmap(Value, piece["v"])),
        # What a look at a file answers repeats the path it was asked about, so it says of no name whose it is.
        prints={} if piece["tool"] == LOOK else {int(item): frozenset(found) for item, found in piece["p"].items()},
        unproven=piece.get("u", False),
        triples={int(item): array("I", found) for item, found in piece.get("d", {}).items()},
    )


def _pasted(piece: Piece, words: Words) -> Result:
    tokens = piece["p"]
    return Result(
        words=words,
        tool=PASTED,
        made=False,
        arguments=(),
        parents=(-1,),
        values=(),
        prints={0: frozenset(prints(tokens))},
        triples={0: array("I", triples(tokens))},
    )


def _interpretation(piece: Piece) -> Interpretation | None:
    return Interpretation.from_json(piece["i"]) if "i" in piece else None


class TaskIndex:
    """Everything shown of one task; unchangeable."""

    def __init__(self, pieces: Sequence[Piece], tasks: Sequence[str] = ()) -> None:
        """Take the pieces in their order, and the ids of the tasks whose words are among them, in theirs."""
        said = [piece for piece in pieces if piece["k"] == "words"]
        self.words = all_words(said)
        self.results = (
            *(_pasted(piece, self.words) for piece in said if piece["p"]),
            *(_result(piece, self.words) for piece in pieces if piece["k"] == "result"),
        )
        self._pieces = tuple(pieces)
        self.messages = tuple(piece.get("w", "") for piece in said)
        self.interpretations = tuple(map(_interpretation, said))
        self.pasting = tuple(bool(piece.get("p")) or "d" in piece for piece in said)
        self.tasks = (*tasks, *[""] * (len(said) - len(tasks)))
        self.day = next((date.fromisoformat(piece["y"]) for piece in reversed(said) if piece.get("y")), None)

    def with_piece(self, piece: Piece) -> TaskIndex:
        """Return the index with one more piece."""
        if piece["k"] == "words":
            return TaskIndex((*self._pieces, piece), self.tasks)
        more = copy.copy(self)
        more.__dict__ = {
            "words": self.words,
            "results": (*self.results, _result(piece, self.words)),
            "_pieces": (*self._pieces, piece),
            "messages": self.messages,
            "interpretations": self.interpretations,
            "pasting": self.pasting,
            "tasks": self.tasks,
            "day": self.day,
        }
        return more

    @computed
    def size(self) -> int:
        """How many values and prints there are."""
        return sum(result.size for result in self.results)

    @computed
    def said(self) -> frozenset[int]:
        """The triples of the user's own words."""
        return frozenset(triples(self.words.tokens))

    def held_elsewhere(self, wanted: set[int], *, pointed: bool) -> Iterator[tuple[int, int]]:
        """Yield for every free text how many of some triples it holds that the user did not say, and how many it has.

        Unless ``pointed``, the texts the user pointed to are left out, and what stands there is no evidence of another.
        """
        wanted = wanted - self.said
        others = []
        for place, result in enumerate(self.results):
            for item, found in result.triples.items():
                if not pointed and self.is_pointed(place, item):
                    wanted.difference_update(found)
                else:
                    others.append(found)
        return ((len(wanted.intersection(found)), len(found)) for found in others)

    @computed
    def asked_for(self) -> tuple[bool, ...]:
        """For every result, whether it was read with what the user said, or by the id of something they named."""
        return tuple(
            result.is_asked_for or (not result.made and any(map(self._identifies, result.arguments)))
            for result in self.results
        )

    @computed
    def pointed(self) -> tuple[bool, ...]:
        """For every result, whether the user pointed at what was read, or a text they pointed to does.

        A text that names where to read on could as well say itself what stands there: that is no more to be trusted.
        """
        found = list(self.asked_for)
        for _ in range(_READ_ON):
            new = [
                place
                for place, result in enumerate(self.results)
                if not found[place] and not result.made and self._is_told(found, result)
            ]
            if not new:
                break
            for place in new:
                found[place] = True
        return tuple(found)

    def _is_told(self, pointed: Sequence[bool], result: Result) -> bool:
        """Return whether a text the user pointed to holds a whole argument of a reading call."""
        return any(
            pointed[place] or item in other.meant
            for wanted in result.argument_prints
            for place, other in enumerate(self.results)
            if pointed[place] or other.meant
            for item in other.items_with(wanted)
        )

    @computed
    def used(self) -> frozenset[str]:
        """The values that calls were made with."""
        return frozenset(value for result in self.results for value in result.arguments)

    @computed
    def read_with(self) -> frozenset[str]:
        """The values that reading calls were made with."""
        return frozenset(value for result in self.results if not result.made for value in result.arguments)

    @computed
    def read_for(self) -> tuple[frozenset[str], ...]:
        """The runs of letters and digits of each of these values."""
        return tuple(
            frozenset(atom for token in value.split(" ") for atom in atoms(token)) for value in sorted(self.read_with)
        )

    def is_bound(self, place: int, value: Value, *, picks: bool) -> bool:
        """Return whether a value is of what the user named, or picked where ``picks`` says so.

        Of an answer to what they said it is too, but none of a list: they named the list, and nothing in it. And what a
        text leads to, nobody named.
        """
        result = self.results[place]
        if value.item in result.names or (picks and value.item in result.picks):
            return True
        return self.asked_for[place] and result.tool is not PASTED and result.is_whole(value)

    def passes_over(self, place: int, item: int) -> bool:
        """Return whether the user picked another item of the list, and spoke of no more than one."""
        named, parents = self.results[place].named, self.results[place].parents
        if not named.picks or item in named.picks | named.items or not QUANTIFIERS.isdisjoint(self.words.token_places):
            return False
        return any(parents[one] == parents[item] for one in named.picks)

    def is_pointed(self, place: int, item: int) -> bool:
        """Return whether the user pointed to the text of an item."""
        return self.pointed[place] or item in self.results[place].meant

    def _identifies(self, value: str) -> bool:
        """Return whether a value is the system's own for something the user named."""
        return any(
            one.kind[0] == "s" and one.item in result.meant
            for result in self.results
            for one in result.by_norm.get(value, ())
        )
