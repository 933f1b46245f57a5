"""The user's own words: what they say, what they quote, and what they only pasted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any, Final

from phylactery_understanding.interpretation.model import Interpretation
from phylactery_understanding.language.own_words import others_in, without_others
from phylactery_understanding.replies.talk import small_talk_in

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.computed import computed
from phylactery_riskgate.domain.intent.languages import (
    ARTICLES,
    COMPARING,
    CURRENCIES,
    HIGHEST,
    LOWEST,
    NEWEST,
    OLDEST,
    PERCENT,
    PRICING,
    RANKS,
    RELATIVE_DAYS,
    SMALL,
    TURNING,
)
from phylactery_riskgate.domain.intent.origin.literals import (
    dates_of,
    grouped_numbers,
    numbers_in,
    spoken_dates,
    yearless,
)
from phylactery_riskgate.domain.intent.origin.pasting import Span, doubted_in, pasted_in, quoted_in
from phylactery_riskgate.domain.intent.origin.spoken import spoken_amounts

Piece = dict[str, Any]

MAX_WORDS: Final = 20_000
"""The number of tokens kept of the user's words."""
_MAX_PLACES: Final = 64
_BREAKS: Final = frozenset(".?!;\n")
_NUMBERING: Final = (("id",), ("number",), ("numero",), ("num",), ("no",))
_BEHIND, _AHEAD = 2, 4
_ENDS: Final = HIGHEST | LOWEST | NEWEST | COMPARING
_RANKED: Final = 5
"""The number of tokens before a picking word in which a rank may be of it: the third by far most expensive."""
_AND: Final = frozenset({"and", "or", "y", "e", "o", "u"})
_PAUSES: Final = frozenset(",:()–—")
_MONEY: Final = "€$£¥"
_STRONG: Final = 8
_SPACE: Final = re.compile(r"\s+")
_POSSESSIVE: Final = "'s"
_LONGEST_GAP: Final = 24
"""The number of characters kept of what is between two tokens."""
_JOINED, _SHORT_PART, _PARTS = 10, 6, 10
"""An account number written in groups: its length, the length of a group, and the number of groups."""


def read_words(
    words: str,
    day: str = "",
    interpretation: Interpretation | None = None,
    *,
    own: Sequence[Span] | None = None,
    starts: Sequence[int] = (),
) -> Piece:
    """Read the user's own words into a piece.

    A piece holds the tokens, where a sentence begins ("b") or a pause ends ("c"), the tokens in quotations ("q"), those
    next to a currency sign ("m") or a percent sign ("%"), and separately the tokens of pasted text ("p") and, as a
    piece, what may be pasted ("d"). A model's interpretation ("i") is kept as shown: it is checked against the words
    whenever it is used. "s" holds what is between the tokens and "x" their accents (see gaps_of, accents_of).

    ``own`` are the parts that the user wrote, None for all. The rest is pasted text ("p"), of which the message ("w")
    has nothing. ``starts`` ("n") are the offsets at which further messages begin. "a" is how many code points are the
    user's own, and how many others wrote; pieces of earlier versions do not have it.
    """
    others = () if own is None else tuple(others_in(words, own))
    theirs = sum(stop - start for start, stop in others)
    authorship = [len(words) - theirs, theirs]
    passed_on = [one for start, stop in others for one in folding.tokens(folding.fold(words[start:stop]))]
    words = words if own is None else without_others(words, own)
    if asides := small_talk_in(words, starts):  # "thanks" as a message of its own is no content of the one before
        words = without_others(words, list(others_in(words, asides)))
    folded = folding.fold(words)
    spans = folding.spans(folded)[:MAX_WORDS]
    pasted, doubted = _within(spans, pasted_in(folded)), _within(spans, doubted_in(folded))
    piece = {
        "k": "words",
        "w": words,
        "y": day,
        "a": authorship,
        "p": [*(folded[start:stop] for at, (start, stop) in enumerate(spans) if at in pasted), *passed_on][:MAX_WORDS],
        **_read(words, folded, spans, [at for at in range(len(spans)) if at not in pasted and at not in doubted]),
    }
    if interpretation is not None:
        piece["i"] = interpretation.to_json()
    if passed_on:
        piece["o"] = True
    if starts:
        piece["n"] = list(starts)
    if not doubted <= pasted:
        piece["d"] = _read(words, folded, spans, sorted(doubted - pasted))
    return piece


def _within(spans: Sequence[Span], regions: Sequence[Span]) -> set[int]:
    """Return which of the tokens begin in one of the regions; both are in order."""
    found: set[int] = set()
    at = 0
    for number, (start, _) in enumerate(spans):
        while at < len(regions) and regions[at][1] <= start:
            at += 1
        if at < len(regions) and regions[at][0] <= start:
            found.add(number)
    return found


def _read(words: str, folded: str, spans: Sequence[Span], which: Sequence[int]) -> Piece:
    """Read some of the tokens of a text."""
    breaks: list[int] = []
    money: list[int] = []
    percents: list[int] = []
    clauses: list[int] = []
    for place, number in enumerate(which):
        start, stop = spans[number]
        before = folded[spans[number - 1][1] if number else 0 : start]
        if place and not _BREAKS.isdisjoint(before):
            breaks.append(place)
        if place and not _PAUSES.isdisjoint(before):
            clauses.append(place)
        if folded[start - 1 : start] in _CURRENCY_SIGNS or folded[stop : stop + 2].strip()[:1] in _CURRENCY_SIGNS:
            money.append(place)
        if folded[stop : stop + 2].strip()[:1] == "%":
            percents.append(place)
    places = [spans[number] for number in which]
    tokens = [folded[start:stop] for start, stop in places]
    return {
        "t": tokens,
        "b": breaks,
        "m": money,
        "%": percents,
        "c": clauses,
        "q": quoted_in(folded, places),
        "s": gaps_of(folded, places),
        "x": accents_of(words, list(zip(which, tokens, strict=True))),
    }


_CURRENCY_SIGNS: Final = frozenset(_MONEY)


def looks_literal(token: str) -> bool:
    """Return True if a token looks like an address or an account number."""
    if "@" in token:
        return True
    return len(token) >= _STRONG and token[-1].isdigit() and token.isalnum() and not token.isdigit()


def is_value(token: str) -> bool:
    """Return True if a token is an address, an account number or a file name rather than a word."""
    return looks_literal(token) or ("." in token and not token[0].isdigit() and not token.endswith("."))


@dataclass(frozen=True, eq=False)
class Words:
    """The user's own words, with look-ups.

    Derived data is cached in ``kept``, so that it is discarded with the words.
    """

    tokens: tuple[str, ...] = field(repr=False)
    breaks: frozenset[int]
    quotes: tuple[Span, ...]
    money_places: frozenset[int]
    percent_places: frozenset[int]
    clauses: frozenset[int]
    gaps: dict[int, str] = field(repr=False)
    """What precedes a token, where it is more than a space."""
    accents: dict[int, str] = field(repr=False)
    """The spelling of a token that has accents."""
    kept: dict[str, Any] = field(default_factory=dict, repr=False)
    begins: int = 0
    """Where the newest words begin, after those of the tasks they continue."""
    doubted: Words | None = field(default=None, repr=False)
    """The part of the words that may be another person's."""

    @computed
    def token_places(self) -> dict[str, list[int]]:
        """Return the positions of each token."""
        return _places(self.tokens)

    @computed
    def has_address(self) -> bool:
        """Return True if a token has an @."""
        return any("@" in one for one in self.tokens)

    @computed
    def atoms(self) -> tuple[str, ...]:
        """Return the runs of letters and digits, in order."""
        return tuple(atom for token in self.tokens for atom in folding.atoms(token))

    @computed
    def atom_places(self) -> dict[str, list[int]]:
        """Return the positions of each run."""
        return _places(self.atoms)

    @computed
    def bare(self) -> tuple[str, ...]:
        """Return the tokens without possessive endings."""
        return tuple(map(bare, self.tokens))

    @computed
    def bare_places(self) -> dict[str, list[int]]:
        """Return the positions of each of these."""
        return _places(self.bare)

    @computed
    def _plain_atoms(self) -> tuple[str, ...]:
        """Return the runs of letters and digits outside of addresses."""
        return tuple(atom for token in self.tokens for atom in ((token,) if "@" in token else folding.atoms(token)))

    @computed
    def plain_places(self) -> dict[str, list[int]]:
        """Return the positions of each run outside of addresses."""
        return _places(self._plain_atoms)

    def hold_plain_atoms(self, wanted: Sequence[str]) -> bool:
        """Return True if some runs occur consecutively in the words, outside of addresses."""
        return follow(wanted, self._plain_atoms, self.plain_places)

    @computed
    def numbers(self) -> frozenset[str]:
        """Return the readings of the numbers that are not part of a date."""
        dated = {place for _, taken in spoken_dates(self.tokens) for place in taken}
        plain = (one for place, token in enumerate(self.tokens) if place not in dated for one in numbers_in(token))
        return frozenset((*plain, *grouped_numbers(self.tokens), *spoken_amounts(self.tokens)))

    @computed
    def ids(self) -> dict[str, list[int]]:
        """Return the numbers that can be an object's id, and their positions: file 5, but not 5 hours or 5 euros."""
        found: dict[str, list[int]] = {}
        for place, token in enumerate(self.tokens):
            if token.isdigit() and self._is_id(place):
                for one in numbers_in(token):
                    if one in self.numbers and one not in self.money and one not in self.percents:
                        found.setdefault(one, []).append(place)
        return found

    def _is_id(self, place: int) -> bool:
        after = place + 1
        ended = after >= len(self.tokens) or after in self.breaks or after in self.clauses
        return ended or self.tokens[after] in SMALL or self.is_numbered(place)

    def is_numbered(self, place: int) -> bool:
        """Return True if the text before a number marks it as an id: id 5, #5."""
        return self.tokens[place - 1 : place] in _NUMBERING or self.gaps.get(place, "").endswith("#")

    def counted(self, place: int) -> str:
        """Return the word before a number, skipping the numbers in between: file 5; files 3 and 5."""
        place -= 1
        while place >= 0 and (self.tokens[place].isdigit() or self.tokens[place] in _AND):
            place -= 1
        return self.tokens[place] if place >= 0 else ""

    @computed
    def money(self) -> frozenset[str]:
        """Return the amounts: numbers next to a currency or with two decimals."""
        found: set[str] = set(spoken_amounts(self.tokens))
        for place, token in enumerate(self.tokens):
            beside = {*self.tokens[max(place - 1, 0) : place], *self.tokens[place + 1 : place + 2]}
            cents = token[-3:-2] in {".", ","}
            if token[0].isdigit() and (cents or place in self.money_places or not CURRENCIES.isdisjoint(beside)):
                found.update(numbers_in(token))
        return frozenset(found)

    @computed
    def percents(self) -> frozenset[str]:
        """Return the numbers that are percentages."""
        return frozenset(
            one
            for place, token in enumerate(self.tokens)
            if place in self.percent_places or not PERCENT.isdisjoint(self.tokens[place + 1 : place + 3])
            for one in numbers_in(token)
        )

    @computed
    def orders(self) -> frozenset[str]:
        """Return the ends of an order by which the words pick: high, low, new, old.

        A picking word follows an article or a comparative ("the latest", "la más cara"); before a time span or a number
        it is about time ("last month", "the event should last 4 hours").
        """
        return frozenset(end for end, _ in self._orders())

    @computed
    def prices(self) -> bool:
        """Return True if the words pick by price: the cheap one."""
        return any(self.tokens[place] in PRICING for _, place in self._orders())

    @computed
    def picked(self) -> frozenset[str]:
        """Return the words around a picking word: they name the object, as in "the largest file"."""
        near = (self.tokens[max(place - _BEHIND, 0) : place + _AHEAD] for _, place in self._orders())
        return frozenset(atom for tokens in near for token in tokens for atom in folding.atoms(token))

    def _orders(self) -> Iterator[tuple[str, int]]:
        for end, turned, kind in (("high", "low", HIGHEST), ("low", "high", LOWEST)):
            for place in self._picking(kind):
                yield (turned if not TURNING.isdisjoint(self.tokens[max(place - 1, 0) : place]) else end), place
        for end, kind in (("new", NEWEST), ("old", OLDEST)):
            yield from ((end, place) for place in self._picking(kind))

    def _picking(self, kind: frozenset[str]) -> Iterator[int]:
        for one in sorted(kind & self.token_places.keys()):
            for place in self.token_places[one]:
                before, after = self.tokens[max(place - 2, 0) : place], self.tokens[place + 1 : place + 2]
                if (
                    not (ARTICLES | COMPARING).isdisjoint(before)
                    and not any(token in RELATIVE_DAYS or token[0].isdigit() for token in after)
                    and not self._is_ranked(place)
                ):
                    yield place

    def _is_ranked(self, place: int) -> bool:
        """Return True if a picking word is a rank of another one, or a rank stands before it: next to last."""
        after = self.tokens[place + 1 : place + 3]
        if self.tokens[place] in RANKS and (tuple(after) == ("to", "last") or not _ENDS.isdisjoint(after[:1])):
            return True
        before = reversed(self.tokens[max(place - _RANKED, 0) : place])
        return any(one in RANKS for one in takewhile(lambda one: one not in ARTICLES, before))

    @computed
    def dates(self) -> frozenset[str]:
        """Return the days named."""
        return frozenset(dates_of(self.tokens))

    @computed
    def relative_days(self) -> frozenset[str]:
        """Return the words for days relative to today."""
        return RELATIVE_DAYS & self.token_places.keys()

    @computed
    def literals(self) -> tuple[str, ...]:
        """Return the addresses and account numbers: values recognizable by their form."""
        return tuple(dict.fromkeys([*(token for token in self.tokens if looks_literal(token)), *sorted(self.joined)]))

    @computed
    def joined(self) -> frozenset[str]:
        """Return the account numbers written in groups."""
        found: set[str] = set()
        for place, token in enumerate(self.tokens):
            whole = token
            for part in self.tokens[place + 1 : place + _PARTS] if any(map(str.isdigit, token)) else ():
                if len(part) > _SHORT_PART or not part.isalnum():
                    break
                whole += part
                if len(whole) >= _JOINED and part[-1].isdigit() and not whole.isdigit():
                    found.add(whole)
        return frozenset(found)

    def hold_tokens(self, wanted: Sequence[str]) -> bool:
        """Return True if some whole values occur consecutively in the words."""
        return follow(wanted, self.tokens, self.token_places)

    def hold_atoms(self, wanted: Sequence[str]) -> bool:
        """Return True if some runs of letters and digits occur consecutively in the words."""
        return follow(wanted, self.atoms, self.atom_places)

    def hold_date(self, date: str) -> bool:
        """Return True if a day is named, with its year or without one."""
        return date in self.dates or yearless(date) in self.dates


def _places(tokens: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for place, token in enumerate(tokens):
        places = found.setdefault(token, [])
        if len(places) < _MAX_PLACES:
            places.append(place)
    return found


def follow(wanted: Sequence[str], tokens: Sequence[str], places: dict[str, list[int]]) -> bool:
    """Return True if some tokens are consecutive; ``places`` has the positions of each."""
    if not wanted:
        return False
    target = tuple(wanted)
    return any(tuple(tokens[place : place + len(target)]) == target for place in places.get(target[0], ()))


def all_words(pieces: Sequence[Piece]) -> Words:
    """Concatenate the words of a task and of those it continues."""
    tokens: list[str] = []
    breaks: set[int] = set()
    quotes: list[Span] = []
    money: set[int] = set()
    percents: set[int] = set()
    clauses: set[int] = set()
    doubted = [piece["d"] for piece in pieces if "d" in piece]
    first = 0
    for piece in pieces:
        first = len(tokens)
        breaks.update((first, *(first + place for place in piece["b"])))
        quotes.extend((first + start, first + stop) for start, stop in piece["q"])
        money.update(first + place for place in piece["m"])
        percents.update(first + place for place in piece["%"])
        clauses.update(first + place for place in piece["c"])
        tokens.extend(piece["t"])
    return Words(
        tuple(tokens),
        frozenset(breaks),
        tuple(quotes),
        frozenset(money),
        frozenset(percents),
        frozenset(clauses),
        gaps=read_gaps(pieces, "s"),
        accents=read_gaps(pieces, "x"),
        begins=first,
        doubted=all_words(doubted) if doubted else None,
    )


def gaps_of(folded: str, places: Sequence[tuple[int, int]]) -> list[list[Any]]:
    """Return what precedes each token, and follows the last, where it is more than a space."""
    found: list[list[Any]] = []
    end = 0
    for place, (start, stop) in enumerate((*places, (len(folded), len(folded)))):
        gap = _SPACE.sub(" ", folded[end:start])
        # What is between tokens may be pasted text, of which nothing is kept.
        if gap != " " and len(gap) <= _LONGEST_GAP and not any(map(str.isalnum, gap)):
            found.append([place, gap])
        end = stop
    return found


def accents_of(words: str, tokens: Sequence[tuple[int, str]]) -> list[list[Any]]:
    """Return the tokens written with accents; ``tokens`` are those that count, and their indexes."""
    if words.isascii():
        return []
    written = folding.tokens(folding.written(words))
    return [
        [place, written[number]]
        for place, (number, token) in enumerate(tokens)
        if number < len(written) and written[number] != token and folding.fold(written[number]) == token
    ]


def bare(token: str) -> str:
    """Return a token without a possessive ending."""
    return token.removesuffix(_POSSESSIVE)


def read_gaps(pieces: Sequence[Mapping[str, Any]], name: str) -> dict[int, str]:
    """Concatenate the gaps, or the accents, of the words of a task."""
    found: dict[int, str] = {}
    first = 0
    for piece in pieces:
        found.update((first + place, text) for place, text in piece.get(name, ()))
        first += len(piece["t"])
    return found
