"""Index of everything RiskGate was shown of one task; look-ups are by normalized value and never a scan."""

from __future__ import annotations

import copy
import re
from array import array
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import chain, starmap, takewhile
from typing import Final
from unicodedata import normalize

from phylactery_chassis.inspection import FindingKind
from phylactery_understanding.calls.proposal import Item, Listing
from phylactery_understanding.calls.values import ORDINALS
from phylactery_understanding.interpretation.model import Interpretation

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.hearing import delegates, requests_in
from phylactery_riskgate.domain.intent.languages import QUANTIFIERS
from phylactery_riskgate.domain.intent.listing import listing
from phylactery_riskgate.domain.intent.origin.literals import dates_in_token
from phylactery_riskgate.domain.intent.origin.naming import Named, Value, named_items, telling
from phylactery_riskgate.domain.intent.origin.prints import prints, triples, whole_print
from phylactery_riskgate.domain.intent.phrases import stem
from phylactery_riskgate.domain.intent.said import Asking, Message, Quoted, asking_of, message_of, quoted_in
from phylactery_riskgate.domain.intent.words import Piece, Words, all_words, is_value, looks_literal

LOOK: Final = "file_info"
"""The tool by which an executor shows that a file exists."""
_SIZE: Final = "size"
PASTED: Final = "what the user pasted"
PASSED_ON: Final = "what the user passed on from others"
"""The same where the channel says so: forwarded, quoted, shared."""
_READ_ON: Final = 3
"""The number of steps for which a text may lead to the next."""
_LONG_NUMBER: Final = 6
_NO_PRINTS: Final[frozenset[int]] = frozenset()
_NUMBER = re.compile(r"-?\d{1,15}(?:\.\d{1,15})?")


_READ_OF_RESULT: Final = ("size", "all_prints", "argument_prints", "is_asked_for", "sources", "titles", "listing")


@dataclass(frozen=True)
class Result:
    """The result of one call, with the words of the task; ``made`` says that the call changed something.

    ``unproven`` says that there is no proof that the call ran: then neither its arguments nor its values are trusted.
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
    whole: frozenset[int] = field(default=frozenset(), repr=False)
    """The prints of the values that are all of a field that the catalog does not describe."""
    repeated: frozenset[int] = field(default=frozenset(), repr=False)
    """The prints that several different texts of the result have."""
    cut: bool = False
    """Only a part of it was read."""
    shown_in_part: bool = False
    """The model was shown only a part of it."""
    written: int = 0
    """The written_size of a text of which the model was shown only a part, 0 if it is not known."""
    spelled: frozenset[str] = frozenset()
    """The arguments that folding changed, as they were spelled; empty in results of earlier versions."""
    in_part: bool = False
    """It lists a part of what there is, as it says itself or as it was not read whole."""
    requests: frozenset[int] = field(default=frozenset(), repr=False)
    """What its texts ask for; empty in results of earlier versions."""

    @computed
    def is_pasted(self) -> bool:
        """Return True if it is no tool's, but came with the user's words."""
        return self.tool in {PASTED, PASSED_ON}

    @computed
    def by_norm(self) -> dict[str, list[Value]]:
        """Return the values by normal form; those written in groups also under their joined form.

        Of equal values one is kept: a list may hold one value a thousand times.
        """
        found: dict[str, list[Value]] = {}
        for value in self.values:
            found.setdefault(value.norm, []).append(value)
            if " " in value.norm and "@" not in value.norm and looks_literal(joined := value.norm.replace(" ", "")):
                found.setdefault(joined, []).append(value)
        return {norm: values if len(values) == 1 else self._distinct(values) for norm, values in found.items()}

    def _distinct(self, values: Sequence[Value]) -> list[Value]:
        once: dict[tuple[object, ...], Value] = {}
        for value in values:
            item = value.item
            place = (item in self.names, item in self.picks, self.parents[item], item == 0)
            once.setdefault((value.kind, value.field, value.written, *place), value)
        return list(once.values())

    @computed
    def sources(self) -> dict[str, list[Value]]:
        """Return the same with one of all values that have the same origin, however many lists they are in."""
        return {norm: values if len(values) == 1 else self._alike(values) for norm, values in self.by_norm.items()}

    def _alike(self, values: Sequence[Value]) -> list[Value]:
        once: dict[tuple[object, ...], Value] = {}
        for value in values:
            item = value.item
            place = (item in self.names, item in self.picks, item == 0, self.passes_over(item))
            once.setdefault((value.kind, value.field, value.written, *place), value)
        return list(once.values())

    @computed
    def listing(self) -> Listing:
        """Return its items, by their words."""
        return listing(self)

    def shows_file(self) -> bool:
        """Return True if it is a look at a file that is there: it returned the file's size."""
        return self.tool == LOOK and any(value.field == _SIZE for value in self.values)

    def is_of(self, path: str) -> bool:
        """Return True if exactly this path is an argument: case and accents tell two files apart."""
        norm, exact = " ".join(folding.tokens(folding.fold(path))), normalize("NFC", path)
        return exact in self.spelled or (exact == norm and norm in self.arguments and not self._is_spelled(norm))

    def _is_spelled(self, norm: str) -> bool:
        """Return True if an argument that folds to this was spelled differently, and no other argument folds to it."""
        same = sum(" ".join(folding.tokens(folding.fold(one))) == norm for one in self.spelled)
        return same >= self.arguments.count(norm)

    @computed
    def lists(self) -> dict[tuple[str, frozenset[str]], list[int]]:
        """Return the items, in order, by a field's name and all of the item's values there."""
        held: dict[tuple[str, int], set[str]] = defaultdict(set)
        for value in self.values:
            held[value.field, value.item].add(value.norm)
        found: dict[tuple[str, frozenset[str]], list[int]] = defaultdict(list)
        for (name, item), norms in held.items():
            found[name, frozenset(norms)].append(item)
        return found

    @computed
    def size(self) -> int:
        """Return the number of values and prints."""
        prints = sum(map(len, self.prints.values())) + len(self.whole) + len(self.repeated)
        return len(self.values) + prints + sum(map(len, self.triples.values()))

    def read_ahead(self) -> None:
        """Work out what any call that is compared with it needs."""
        for name in _READ_OF_RESULT:
            getattr(self, name)

    @property
    def unread(self) -> int:
        """Return its size until a call was compared with it, which takes a multiple of the time of later calls."""
        return 0 if "listing" in self.__dict__ or not self.values else self.size

    @computed
    def numbers(self) -> tuple[tuple[Value, float], ...]:
        """Return the numeric values, except those from free text."""
        return tuple(
            (value, float(value.norm))
            for value in self.values
            if value.kind[0] != "f" and _NUMBER.fullmatch(value.norm) is not None
        )

    @computed
    def titles(self) -> frozenset[frozenset[str]]:
        """Return the words of each name of several words, in which others may ask for something."""
        return frozenset(frozenset(value.norm.split()) for value in self.values if value.is_written)

    @computed
    def private(self) -> tuple[Value, ...]:
        """Return the values that must not leave unless requested."""
        return tuple(value for value in self.values if value.kind[0] == "p")

    @computed
    def all_prints(self) -> frozenset[int]:
        """Return the prints of every item."""
        return frozenset().union(*self.prints.values()) if len(self.prints) != 1 else next(iter(self.prints.values()))

    @computed
    def all_triples(self) -> frozenset[int]:
        """Return the triples of every item."""
        return frozenset(chain.from_iterable(self.triples.values()))

    def first_with(self, wanted: Sequence[int], among: frozenset[int]) -> int | None:
        """Return an item whose text contains all the prints, preferably one of ``among``, or None."""
        if not wanted or not self.all_prints.issuperset(wanted):
            return None
        inside = (item for item in among if self.prints.get(item, _NO_PRINTS).issuperset(wanted))
        return next(chain(inside, self.items_with(wanted)), None)

    def mentions(self, whole: int, forms: Sequence[Sequence[int]]) -> bool:
        """Return True if a text contains a value in one of its forms, apart from the field that is the value.

        The first form is that of the field; in another form only another text has it.
        """
        own = self.repeated if whole in self.whole else self.all_prints
        first, *others = forms
        return own.issuperset(first) or any(self.all_prints.issuperset(form) for form in others)

    def items_with(self, wanted: Sequence[int]) -> Iterator[int]:
        """Return the items whose text contains all the prints."""
        if wanted and self.all_prints.issuperset(wanted):
            for item, found in self.prints.items():
                if found.issuperset(wanted):
                    yield item

    def within(self, item: int) -> Iterator[int]:
        """Return an item and all its ancestors."""
        while item >= 0:
            yield item
            item = self.parents[item]

    def is_whole(self, value: Value) -> bool:
        """Return True if a value belongs to the result as a whole and not to a list item."""
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
        """Return the items the user named or picked."""
        return named_items(self.values, self.parents, self.words)

    @computed
    def names(self) -> frozenset[int]:
        """Return the items the user named, and their ancestors."""
        return self._below(self.named.items)

    @computed
    def picks(self) -> frozenset[int]:
        """Return the items at an end of an order the user mentioned, and their ancestors."""
        return self._below(self.named.picks)

    @computed
    def meant(self) -> frozenset[int]:
        """Return both of these."""
        return self.names | self.picks

    def _below(self, items: frozenset[int]) -> frozenset[int]:
        if not items:
            return items
        return frozenset(item for item in range(len(self.parents)) if any(one in items for one in self.within(item)))

    @computed
    def meant_prints(self) -> frozenset[int]:
        """Return the prints of the items the user named or picked."""
        return frozenset().union(*(self.prints.get(item, _NO_PRINTS) for item in self.meant))

    def passes_over(self, item: int) -> bool:
        """Return True if the user picked another item of the list, and not this one."""
        named = self.named
        return item not in named.picks and item not in named.items and self.parents[item] in self._picked_from

    @computed
    def _picked_from(self) -> frozenset[int]:
        return frozenset(self.parents[one] for one in self.named.picks)

    @computed
    def argument_prints(self) -> tuple[list[int], ...]:
        """Return the prints of the arguments that could name what to read."""
        return tuple(
            prints(value.split(" "))
            for value in self.arguments
            if not value.isdigit()
            and any(is_value(token) or telling(folding.atoms(token)) for token in value.split(" "))
        )

    @computed
    def is_asked_for(self) -> bool:
        """Return True if it was read with values the user gave."""
        return self.is_pasted or (not self.made and any(map(self._is_said, self.arguments)))

    def _is_said(self, value: str) -> bool:
        if value.isdigit() and len(value) < _LONG_NUMBER:
            return False
        date = next(dates_in_token(value), "")
        if date:
            return self.words.hold_date(date)
        tokens = value.split(" ")
        if any(map(is_value, tokens)) and self.words.hold_tokens(tokens):
            return True
        tells = telling(atom for token in tokens for atom in folding.atoms(token))
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
        # The result of a look at a file repeats the requested path, so it does not say whose a name is.
        prints={} if piece["tool"] == LOOK else {int(item): frozenset(found) for item, found in piece["p"].items()},
        unproven=piece.get("u", False),
        triples={int(item): array("I", found) for item, found in piece.get("d", {}).items()},
        whole=frozenset() if piece["tool"] == LOOK else frozenset(piece.get("f", {}).get("0", ())),
        repeated=frozenset(piece.get("s", {}).get("0", ())),
        cut=piece.get("x", False),
        shown_in_part="h" in piece,
        written=piece.get("n", 0),
        spelled=frozenset(piece.get("e", ())),
        in_part=piece.get("l", False) or piece.get("x", False),
        requests=frozenset(piece.get("r", {}).get("0", ())),
    )


def _pasted(piece: Piece, words: Words) -> Result:
    tokens = piece["p"]
    return Result(
        words=words,
        tool=PASSED_ON if piece.get("o") else PASTED,
        made=False,
        arguments=(),
        parents=(-1,),
        values=(),
        prints={0: frozenset(prints(tokens))},
        triples={0: array("I", triples(tokens))},
        requests=frozenset(requests_in([tokens])),
    )


def _interpretation(piece: Piece) -> Interpretation | None:
    return Interpretation.from_json(piece["i"]) if "i" in piece else None


def _authorship(said: Sequence[Piece]) -> tuple[tuple[int, int], ...]:
    """Return the sizes of what the user and what others wrote, newest first, up to a piece of an earlier version."""
    known = takewhile(lambda piece: "a" in piece, reversed(said))
    return tuple((own, others) for own, others in (piece["a"] for piece in known))


def _shown_before(pieces: Sequence[Piece]) -> tuple[int, ...]:
    """Return, for each message, how many of the results, those of pasted text first, were there before it."""
    seen = sum(1 for piece in pieces if piece["k"] == "words" and piece["p"])
    found = list[int]()
    for piece in pieces:
        if piece["k"] == "words":
            found.append(seen)
        else:
            seen += piece["k"] == "result"
    return tuple(found)


_OF_WORDS: Final = ("characters", "delegates", "stems", "said_triples", "_quoted", "asking")
"""What an index has computed that a further result does not change."""


class TaskIndex:
    """Everything shown of one task; immutable."""

    def __init__(self, pieces: Sequence[Piece], tasks: Sequence[str] = (), known: Sequence[Message] = ()) -> None:
        """Take the pieces in order, and the ids of the tasks whose words are among them, in the same order.

        Messages that are ``known`` from another index of the person are not read again.
        """
        said = [piece for piece in pieces if piece["k"] == "words"]
        self.words = all_words(said)
        self.results = (
            *(_pasted(piece, self.words) for piece in said if piece["p"]),
            *(_result(piece, self.words) for piece in pieces if piece["k"] == "result"),
        )
        self._pieces = tuple(pieces)
        self.messages = tuple(piece.get("w", "") for piece in said)
        self.interpretations = tuple(map(_interpretation, said))
        read = {one: one for one in known}
        self.said = tuple(read.get(one, one) for one in map(message_of, said))
        self.authorship = _authorship(said)
        self.pasting = tuple(bool(piece.get("p")) or "d" in piece for piece in said)
        self.tasks = (*tasks, *[""] * (len(said) - len(tasks)))
        self._shown_before = _shown_before(pieces)
        self.day = next((date.fromisoformat(piece["y"]) for piece in reversed(said) if piece.get("y")), None)

    def with_piece(self, piece: Piece) -> TaskIndex:
        """Return the index with one more piece."""
        if piece["k"] == "words":
            return TaskIndex((*self._pieces, piece), self.tasks, self.said)
        more = copy.copy(self)
        more.__dict__ = {
            "words": self.words,
            "results": (*self.results, _result(piece, self.words)),
            "_pieces": (*self._pieces, piece),
            "messages": self.messages,
            "interpretations": self.interpretations,
            "said": self.said,
            "authorship": self.authorship,
            "pasting": self.pasting,
            "tasks": self.tasks,
            "day": self.day,
            "_shown_before": self._shown_before,
            # what depends on the words alone
            **{name: self.__dict__[name] for name in _OF_WORDS if name in self.__dict__},
        }
        return more

    @computed
    def asking(self) -> Asking | None:
        """Return what the newest message that is no mere yes asks for."""
        return asking_of(self.said)

    @computed
    def delegates(self) -> bool:
        """Return True if the user leaves it to a text what is done."""
        return delegates(self.words.tokens)

    @computed
    def stems(self) -> frozenset[str]:
        """Return the stems of the user's own words."""
        return frozenset(map(stem, frozenset(self.words.atoms)))

    @computed
    def _quoted(self) -> dict[int, tuple[Quoted, ...]]:
        return {}

    def quoted(self, place: int) -> tuple[Quoted, ...]:
        """Return what a model's interpretation of the message at a place quotes, if there is one."""
        interpretation = self.interpretations[place]
        if interpretation is not None and place not in self._quoted:
            end = place + 1
            self._quoted[place] = quoted_in(interpretation, self.said[:end], self.pasting[:end])
        return self._quoted.get(place, ())

    @computed
    def _newest(self) -> dict[str, dict[tuple[str, ...], int]]:
        """Return the places of the results that read something: by tool, the newest of each arguments."""
        found: dict[str, dict[tuple[str, ...], int]] = defaultdict(dict)
        for place, result in enumerate(self.results):
            if not result.made and not result.is_pasted:
                found[result.tool][result.arguments] = place
        return found

    def beside(self, place: int) -> tuple[Listing, ...]:
        """Return the listings that the same tool gave too, the newest for each arguments: other pages, a later look."""
        others = self._newest.get(self.results[place].tool, {}).values()
        return tuple(self.results[other].listing for other in others if other != place)

    def is_shown_before(self, place: int, message: int) -> bool:
        """Return True if a result was there when a message, by its place among the messages, was written."""
        return place < self._shown_before[message]

    @computed
    def size(self) -> int:
        """Return the number of values and prints."""
        return sum(result.size for result in self.results)

    @property
    def unread(self) -> int:
        """Return the size of the messages and results that were neither read ahead nor compared with a call so far."""
        return sum(message.unread for message in self.said) + sum(result.unread for result in self.results)

    @computed
    def characters(self) -> int:
        """Return the number of characters of the user's messages."""
        return sum(map(len, self.messages))

    def read_ahead(self) -> None:
        """Work out what any call needs of the messages and of each result, which takes most of a first call's time.

        It is the same whoever works it out and when; a call that comes first, or elsewhere, does so itself.
        """
        for message in self.said:
            if message.unread:
                message.read_ahead()
        for result in self.results:
            if result.unread:
                result.read_ahead()

    @computed
    def said_triples(self) -> frozenset[int]:
        """Return the triples of the user's own words."""
        return frozenset(triples(self.words.tokens))

    def held_elsewhere(
        self, wanted: set[int], *, pointed: bool, kept: Collection[str] = ()
    ) -> Iterator[tuple[int, int]]:
        """Yield, for every free text, how many of the triples it holds that the user did not say, and its total.

        Unless ``pointed``, the texts the user pointed to are skipped, and their content does not count for other texts;
        nor does the text that was read with one of the ``kept`` values, where the content goes: it stays there.
        """
        wanted = wanted - self.said_triples
        others, kept_of = [], frozenset(kept)
        for place, result in enumerate(self.results):
            for item, found in result.triples.items():
                stays = not result.made and not kept_of.isdisjoint(result.arguments)
                if not pointed and (stays or self.is_pointed(place, item)):
                    wanted.difference_update(found)
                else:
                    others.append(found)
        return ((len(wanted.intersection(found)), len(found)) for found in others)

    @computed
    def asked_for(self) -> tuple[bool, ...]:
        """Return, for each result, whether it was read with the user's values or the id of something they named."""
        return tuple(
            result.is_asked_for or (not result.made and any(map(self._identifies, result.arguments)))
            for result in self.results
        )

    @computed
    def pointed(self) -> tuple[bool, ...]:
        """Return, for each result, whether the user, or a text they pointed to, pointed at what was read.

        A text that names where to read next could as well state the content itself, so following it adds no risk.
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
        """Return True if a text the user pointed to contains a whole argument of a reading call."""
        return any(
            pointed[place] or item in other.meant
            for wanted in result.argument_prints
            for place, other in enumerate(self.results)
            if pointed[place] or other.meant
            for item in other.items_with(wanted)
        )

    @computed
    def hidden(self) -> frozenset[FindingKind]:
        """Return the kinds of the values in the results that a redaction removes."""
        return frozenset(FindingKind(kind) for piece in self._pieces for kind in piece.get("z", ()))

    @computed
    def seen_in_part(self) -> frozenset[str]:
        """Return the last tokens of what was read where the model was shown only a part."""
        return frozenset(name for piece in self._pieces for name in piece.get("h", ()))

    def is_unread(self, path: str) -> bool:
        """Return True if a look showed that a file is there, and no call of the task has read or written it."""
        norm = " ".join(folding.tokens(folding.fold(path)))
        if not any(norm in result.arguments and result.shows_file() for result in self.results):
            return False
        return not any(result.tool != LOOK and result.is_of(path) for result in self.results)

    @computed
    def used(self) -> frozenset[str]:
        """Return the values that calls were made with."""
        return frozenset(value for result in self.results for value in result.arguments)

    @computed
    def read_with(self) -> frozenset[str]:
        """Return the values that reading calls were made with."""
        return frozenset(value for result in self.results if not result.made for value in result.arguments)

    def is_bound(self, place: int, value: Value, *, picks: bool) -> bool:
        """Return True if a value belongs to what the user named or, with ``picks``, picked.

        A value of a result that was read with the user's values belongs too, but no value of a list item: the user
        named the list, not its items. What a text leads to was not named by the user.
        """
        result = self.results[place]
        if value.item in result.names or (picks and value.item in result.picks):
            return True
        return self.asked_for[place] and not result.is_pasted and result.is_whole(value)

    def passes_over(self, place: int, item: int) -> bool:
        """Return True if the user picked another item of the list, and mentioned only one.

        In a list that they were shown they may have meant the item by its place there: the last one.
        """
        result = self.results[place]
        passed = result.passes_over(item) and QUANTIFIERS.isdisjoint(self.words.token_places)
        return passed and not (self.is_shown_before(place, -1) and self._is_placed(result.listing.at(item)))

    def _is_placed(self, item: Item | None) -> bool:
        said = (wanted for word, wanted in ORDINALS.items() if word in self.words.token_places)
        return item is not None and any(item.place == (one if one >= 0 else item.count + one) for one in said)

    def is_pointed(self, place: int, item: int) -> bool:
        """Return True if the user pointed to the text of an item."""
        return self.pointed[place] or item in self.results[place].meant

    def field_of(self, tokens: Sequence[str], forms: Sequence[Sequence[int]], *, made: bool) -> Result | None:
        """Return the result that has a value as all of a field, unless any other text mentions it, in any form.

        A field is data; another text could be an instruction that names the value. What was not read could be one, too.
        A result that repeats an argument of its own call says nothing. With ``made``, only the results of calls that
        changed something count.
        """
        whole, norm = whole_print(tokens), " ".join(tokens)
        if any(result.cut or result.mentions(whole, forms) for result in self.results):
            return None
        holding = (one for one in self.results if whole in one.whole and norm not in one.arguments)
        return next((one for one in holding if one.made or not made), None)

    def _identifies(self, value: str) -> bool:
        """Return True if a value is the system's own identifier of something the user named."""
        return any(
            one.kind[0] == "s" and one.item in result.meant
            for result in self.results
            for one in result.by_norm.get(value, ())
        )
