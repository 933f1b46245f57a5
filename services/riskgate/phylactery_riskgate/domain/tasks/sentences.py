"""The user's words as sentences, in which a quote, an address or a file's name is one word, and the phrases in them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, cast

from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.languages import (
    BEARING,
    BEFORE_NOUNS,
    BIDDING,
    DONE,
    FORGETTING,
    IDIOMS,
    NEAR_NEGATIONS,
    NEGATIONS,
    NO_WAY,
    POINTING,
    SMALL,
)
from phylactery_riskgate.domain.tasks.mood import clause_of
from phylactery_riskgate.domain.tasks.words import Words, is_value, looks_literal

_NEGATION_REACH: Final = 4
_WHY_NOT: Final = ("por", "que", "no")
QUOTE: Final = "\u2026"
"""Stands for a value in a sentence."""
_SHORTEST_STEM: Final = 3
_SENTENCES: Final = "sentences"
_MAX_STARTS: Final = 32
_MAX_SENTENCES: Final = 400
_MAX_SENTENCE: Final = 400

_ENDINGS: Final = (
    *("selo", "sela", "selos", "selas", "melo", "mela", "melos", "melas", "noslo", "nosla", "iendo", "ando"),
    *("les", "los", "las", "nos", "ing", "ies", "ed", "es", "me", "te", "le", "lo", "la", "se"),
    *("ar", "er", "ir", "as", "os", "an", "en", "s", "e", "a", "o", "y", "r", "i"),
)
_IDIOMS: Final = {last: [one[:-1] for one in IDIOMS if one[-1] == last] for last in {one[-1] for one in IDIOMS}}
_VERB = re.compile(r"(?:[aei]r(?:[mts]e|l[eoa]s?|nos){0,2}|ing)$")
"""What stands behind a preposition and is a verb all the same: de enviarle, about sending."""


def stem(atom: str) -> str:
    """Cuts endings of Spanish and English words, so that forms of one word are equal; crude and always the same."""
    cut = True
    while cut:
        cut = False
        for ending in _ENDINGS:
            if atom.endswith(ending) and len(atom) - len(ending) >= _SHORTEST_STEM:
                atom = atom[: -len(ending)]
                cut = True
                break
    return atom


@dataclass(frozen=True, slots=True)
class Phrase:
    """A phrase; ``first`` is its first word as it is written."""

    first: str
    stems: tuple[str, ...]
    gaps: tuple[int, ...]


class Spelled(NamedTuple):
    """What is one word in a sentence: its place, its atoms, and whether it is an address or an account, or quoted."""

    place: int
    atoms: tuple[str, ...]
    literal: bool
    quoted: bool


class Sentence:
    """One sentence of the user's words, in which a quote, an address or a file's name is one word.

    ``tokens`` says which token of the words each atom is of.
    """

    def __init__(
        self,
        atoms: Sequence[str],
        tokens: Sequence[int],
        values: Sequence[Spelled],
        clauses: Sequence[int],
    ) -> None:
        self.clauses = tuple(clauses)
        self.values = tuple(values)
        self.atoms = tuple(atoms)
        self.tokens = tuple(tokens)
        self.stems = tuple(stem(atom) for atom in atoms)
        self.said = frozenset((*atoms, *(atom for value in values for atom in value.atoms)))
        self.places: dict[str, list[int]] = {}
        for place, one in enumerate(self.stems):
            places = self.places.setdefault(one, [])
            if len(places) < _MAX_STARTS:
                places.append(place)

    def asks(self, place: int, phrase: Phrase) -> bool:
        """Says whether the first word of a phrase asks where it stands: not as a thing, nor as what is done already."""
        form = self.atoms[place]
        before = self.atoms[max(place - len(_WHY_NOT), 0) : place]
        thing = bool(before) and before[-1] in BEFORE_NOUNS and before != _WHY_NOT
        if form in NEGATIONS and form != phrase.first:
            return False
        if form == phrase.first:
            return not (thing and len(phrase.stems) == 1) and not self.denies(place)
        verb = _VERB.search(form) is not None
        return (verb or not thing) and not form.endswith(DONE) and not self.denies(place)

    def is_thing(self, place: int) -> bool:
        """Says whether a word that could be a verb is a thing where it stands: the email, this email is odd."""
        before = self.atoms[max(place - 1, 0) : place]
        if not POINTING.isdisjoint(before):
            return clause_of(self, place) == place - 1
        return not BEARING.isdisjoint(before)

    def denies(self, place: int) -> bool:
        """Says whether what stands at a place is ruled out: do not, never; "do not forget to" asks for it."""
        first = clause_of(self, place)
        told = sum(atom in BIDDING for atom in self.atoms[max(place - _NEGATION_REACH, first) : place])
        begins = max(place - _NEGATION_REACH - told, first)
        before = self.atoms[begins:place]
        if any(pair in NO_WAY for pair in pairwise(before)) or _stops(self.atoms[place], before):
            return True
        at = max((near for near, atom in enumerate(before) if _denies(atom, before[near + 1 :])), default=-1)
        if at < 0 or not FORGETTING.isdisjoint(before[at:]):
            return False
        # Why not send it? Why don't you send it? asks rather than forbids.
        asks = self.atoms[max(begins + at - 2, first) : begins + at]
        return "why" not in asks and asks != _WHY_NOT[:-1]

    def forbids(self) -> bool:
        """Says whether anything at all is ruled out."""
        return any(
            _denies(atom, self.atoms[place + 1 : place + 2]) and FORGETTING.isdisjoint(self.atoms[place:])
            for place, atom in enumerate(self.atoms)
        )


def _denies(atom: str, after: Sequence[str]) -> bool:
    if atom in NEGATIONS or after[:1] == ("t",):
        return True
    return atom in NEAR_NEGATIONS and (SMALL | BIDDING).issuperset(after)


def _stops(form: str, before: Sequence[str]) -> bool:
    return (before[-1:] == ("stop",) and form.endswith("ing")) or before[-2:] in {("deja", "de"), ("para", "de")}


def sentences(words: Words) -> tuple[Sentence, ...]:
    """Answers the sentences of the words, as many as are looked at."""
    if _SENTENCES not in words.kept:
        words.kept[_SENTENCES] = tuple(_sentences(words))
    return cast("tuple[Sentence, ...]", words.kept[_SENTENCES])


def _sentences(words: Words) -> list[Sentence]:
    found: list[Sentence] = []
    said = _Said()
    closes = dict(words.quotes)
    place = 0
    while place < len(words.tokens) and len(found) < _MAX_SENTENCES:
        if said.atoms and (place in words.breaks or len(said.atoms) >= _MAX_SENTENCE):
            found.append(said.sentence())
            said = _Said()
        stop = closes.get(place, place + 1)
        if place in words.clauses:
            said.clause()
        said.take(place, words.tokens[place:stop], quoted=place in closes)
        place = stop
    if said.atoms:
        found.append(said.sentence())
    return found


class _Said:
    """A sentence as it is read."""

    def __init__(self) -> None:
        self.atoms: list[str] = []
        self._tokens: list[int] = []
        self._values: list[Spelled] = []
        self._clauses: list[int] = []

    def clause(self) -> None:
        """Begins what follows a comma."""
        self._clauses.append(len(self.atoms))

    def take(self, place: int, tokens: Sequence[str], *, quoted: bool) -> None:
        """Takes the next word, or the words of the next quote."""
        atoms = [atom for token in tokens for atom in folding.atoms(token)]
        if quoted or is_value(tokens[0]):
            self._values.append(Spelled(len(self.atoms), tuple(atoms), any(map(looks_literal, tokens)), quoted))
            atoms = [QUOTE]
        for idiom in _IDIOMS.get(atoms[0], ()):
            if self.atoms and tuple(self.atoms[-len(idiom) :]) == idiom:
                del self.atoms[-len(idiom) :], self._tokens[-len(idiom) :]
                return
        self.atoms.extend(atoms)
        self._tokens.extend(place for _ in atoms)

    def sentence(self) -> Sentence:
        """Answers the sentence."""
        return Sentence(self.atoms, self._tokens, self._values, self._clauses)
