"""How clearly the user's words ask for what a tool does, by the phrases and examples of its catalog entry.

What stands in quotes is a value: it fills a place in a phrase and asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final, cast

from phylactery_riskgate.domain.model import Asks, CatalogTool
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.languages import (
    ARTICLES,
    BEFORE_NOUNS,
    DELEGATING,
    DONE,
    FORGETTING,
    IDIOMS,
    NEAR_NEGATIONS,
    NEGATIONS,
    OWN,
    PRONOUNS,
    SMALL,
)
from phylactery_riskgate.domain.tasks.words import Words, is_value

NOT_ASKED: Final = 0
HALF_ASKED: Final = 1
CLEARLY_ASKED: Final = 2

_GAP, _NEXT = 9, 1
"""Words a * may stand for, and how many may stand between two words of a phrase without it; small ones not counted."""
_REACH: Final = 30
"""Words of any kind between two words of a phrase."""
_NEGATION_REACH: Final = 4
_ANY, _QUOTE = "*", "\u2026"
_SHORTEST_STEM: Final = 3
_DELEGATION_GAP: Final = 10
_SENTENCES: Final = "sentences"
_MAX_STARTS: Final = 32
_MAX_SENTENCES: Final = 400
_MAX_SENTENCE: Final = 400
_SHOWN: Final = 12
_LEAST_EXAMPLE: Final = 2
_LEAST_LIKE, _LIKE = 3, 0.6
"""Words in common with an example, and how much of it they are."""

_ENDINGS: Final = (
    *("selo", "sela", "selos", "selas", "melo", "mela", "melos", "melas", "noslo", "nosla", "iendo", "ando"),
    *("les", "los", "las", "nos", "ing", "ies", "ed", "es", "me", "te", "le", "lo", "la", "se"),
    *("ar", "er", "ir", "as", "os", "an", "en", "s", "e", "a", "o", "y", "r", "i"),
)
_VERB = re.compile(r"(?:[aei]r(?:[mts]e|l[eoa]s?|nos){0,2}|ing)$")
"""What stands behind a preposition and is a verb all the same: de enviarle, about sending."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


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
class Asked:
    """How clearly something is asked for, the words that say so, and the tokens at which it is asked for."""

    level: int
    words: tuple[str, ...] = ()
    starts: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase; ``first`` is its first word as it is written."""

    first: str
    stems: tuple[str, ...]
    gaps: tuple[int, ...]


class Sentence:
    """One sentence of the user's words, in which a quote, an address or a file's name is one word.

    ``tokens`` says which token of the words each atom is of.
    """

    def __init__(
        self, atoms: Sequence[str], tokens: Sequence[int], quoted: Sequence[str], clauses: Sequence[int]
    ) -> None:
        self.clauses = tuple(clauses)
        self.atoms = tuple(atoms)
        self.tokens = tuple(tokens)
        self.stems = tuple(stem(atom) for atom in atoms)
        self.said = frozenset((*atoms, *quoted))
        self.places: dict[str, list[int]] = {}
        for place, one in enumerate(self.stems):
            places = self.places.setdefault(one, [])
            if len(places) < _MAX_STARTS:
                places.append(place)

    def asks(self, place: int, phrase: _Phrase) -> bool:
        """Says whether the first word of a phrase asks where it stands: not as a thing, nor as what is done already."""
        form = self.atoms[place]
        thing = place > 0 and self.atoms[place - 1] in BEFORE_NOUNS
        if form == phrase.first:
            return not (thing and len(phrase.stems) == 1) and not self.denies(place)
        verb = _VERB.search(form) is not None
        return (verb or not thing) and not form.endswith(DONE) and not self.denies(place)

    def denies(self, place: int) -> bool:
        """Says whether what stands at a place is ruled out: do not, never; "do not forget to" asks for it."""
        first = max((start for start in self.clauses if start <= place), default=0)
        before = self.atoms[max(place - _NEGATION_REACH, first) : place]
        at = max((near for near, atom in enumerate(before) if _denies(atom, before[near + 1 :])), default=-1)
        return at >= 0 and FORGETTING.isdisjoint(before[at:])


def _denies(atom: str, after: Sequence[str]) -> bool:
    if atom in NEGATIONS or after[:1] == ("t",):
        return True
    return atom in NEAR_NEGATIONS and SMALL.issuperset(after)


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
        self._quoted: list[str] = []
        self._clauses: list[int] = []

    def clause(self) -> None:
        """Begins what follows a comma."""
        self._clauses.append(len(self.atoms))

    def take(self, place: int, tokens: Sequence[str], *, quoted: bool) -> None:
        """Takes the next word, or the words of the next quote."""
        atoms = [atom for token in tokens for atom in folding.atoms(token)]
        if quoted or is_value(tokens[0]):
            self._quoted.extend(atoms)
            atoms = [_QUOTE]
        if self.atoms and (self.atoms[-1], atoms[0]) in IDIOMS:
            self.atoms.pop()
            self._tokens.pop()
            return
        self.atoms.extend(atoms)
        self._tokens.extend(place for _ in atoms)

    def sentence(self) -> Sentence:
        """Answers the sentence."""
        return Sentence(self.atoms, self._tokens, self._quoted, self._clauses)


@lru_cache(maxsize=4_096)
def _phrases(asks: Asks) -> tuple[_Phrase, ...]:
    return tuple(phrase for text in (*asks.phrases_en, *asks.phrases_es) if (phrase := _phrase(text)).stems)


@lru_cache(maxsize=4_096)
def _examples(asks: Asks) -> tuple[frozenset[str], ...]:
    read = (
        frozenset(stem(atom) for atom in folding.atoms_of(folding.fold(text)) if atom not in SMALL)
        for text in (*asks.examples_en, *asks.examples_es)
    )
    return tuple(example for example in read if len(example) >= _LEAST_EXAMPLE)


def _phrase(text: str) -> _Phrase:
    first = ""
    stems: list[str] = []
    gaps: list[int] = []
    gap = _NEXT
    for word in text.split():
        if word == _ANY:
            gap = _GAP
            continue
        for atom in folding.atoms_of(folding.fold(word)):
            if atom not in ARTICLES:
                first = first or atom
                stems.append(stem(atom))
                gaps.append(gap)
                gap = _NEXT
    return _Phrase(first, tuple(stems), tuple(gaps))


@lru_cache(maxsize=1_024)
def _by_name(name: str) -> tuple[_Phrase, ...]:
    """What a tool is called asks for it half, where the catalog says nothing better: delete_file is delete * file."""
    phrase = _phrase(" * ".join(_CAMEL.sub("_", name).replace("_", " ").replace(".", " ").replace("-", " ").split()))
    return (phrase,) if len(phrase.stems) > 1 else ()


def asked(words: Words, tool: CatalogTool, targets: Sequence[Sequence[str]] = ()) -> Asked:
    """Says how clearly the words ask for a tool's effect; ``targets`` are the atoms of what it would be done to."""
    said = sentences(words)
    found = _clearly(said, tool.asks)
    phrases = _phrases(tool.asks) or _by_name(tool.name)
    return found or _half(said, phrases, targets) or _like(said, tool.asks) or Asked(NOT_ASKED)


def _clearly(said: Sequence[Sentence], asks: Asks) -> Asked | None:
    shown: tuple[str, ...] = ()
    starts: list[int] = []
    for sentence in said:
        end = -1
        for start, stop in sorted(_matches(sentence, asks)):
            shown = shown or sentence.atoms[start:stop][:_SHOWN]
            if start >= end:
                starts.append(sentence.tokens[start])
            end = max(end, stop)
    return Asked(CLEARLY_ASKED, shown, tuple(starts)) if starts else None


def _matches(sentence: Sentence, asks: Asks) -> Iterator[tuple[int, int]]:
    for phrase in _phrases(asks):
        yield from _places(phrase, sentence)
    for example in _examples(asks):
        if example <= sentence.places.keys():
            yield 0, len(sentence.atoms)


def _like(said: Sequence[Sentence], asks: Asks) -> Asked | None:
    """Half asked is also what has most of an example in it."""
    for sentence in said:
        for example in _examples(asks):
            common = example & sentence.places.keys()
            if len(common) >= _LEAST_LIKE and len(common) >= _LIKE * len(example):
                return Asked(HALF_ASKED, _shown(sentence, common))
    return None


def _shown(sentence: Sentence, stems: frozenset[str]) -> tuple[str, ...]:
    shown = (atom for atom, one in zip(sentence.atoms, sentence.stems, strict=True) if one in stems)
    return tuple(islice(shown, _SHOWN))


def _half(said: Sequence[Sentence], phrases: Sequence[_Phrase], targets: Sequence[Sequence[str]]) -> Asked | None:
    """Half asked is a phrase out of order, or its verb with what it would be done to."""
    for sentence in said:
        for phrase in phrases:
            starts = [one for one in sentence.places.get(phrase.stems[0], ()) if sentence.asks(one, phrase)]
            if not starts:
                continue
            whole = all(one in sentence.places for one in phrase.stems)
            if whole or any(target and sentence.said.issuperset(target) for target in targets):
                return Asked(HALF_ASKED, (sentence.atoms[starts[0]],))
    return None


def _places(phrase: _Phrase, sentence: Sentence) -> Iterator[tuple[int, int]]:
    if any(one not in sentence.places for one in phrase.stems):
        return
    for start in sentence.places[phrase.stems[0]]:
        stop = _follow(phrase, sentence, start)
        if stop is not None and sentence.asks(start, phrase):
            yield start, stop + 1


def _follow(phrase: _Phrase, sentence: Sentence, start: int) -> int | None:
    place = start
    for wanted, gap in zip(phrase.stems[1:], phrase.gaps[1:], strict=True):
        passed = 0
        place += 1
        end = min(place + _REACH, len(sentence.stems))
        while place < end and sentence.stems[place] != wanted:
            passed += sentence.atoms[place] not in SMALL
            if passed > gap:
                return None
            place += 1
        if place >= end:
            return None
    return place


def picks(words: Words, tool: CatalogTool) -> bool:
    """Says whether the user picks what the tool works on by an order, as its phrases or its name call it."""
    if not words.picked:
        return False
    named = (one for phrase in (*_phrases(tool.asks), *_by_name(tool.name)) for one in phrase.stems[1:])
    return not {stem(atom) for atom in words.picked if atom not in SMALL}.isdisjoint(named)


def delegated(words: Words) -> bool:
    """Says whether the user pointed at a place that tells what to do."""
    return any(
        _delegates(sentence, place, objects)
        for sentence in sentences(words)
        for verbs, objects in _DELEGATING
        for verb in verbs
        for place in sentence.places.get(verb, ())
    )


def _delegates(sentence: Sentence, place: int, objects: frozenset[str]) -> bool:
    """Says whether a verb has an object near it; "do not forget" and "the following tasks" point nowhere."""
    after = slice(place + 1, place + 1 + _DELEGATION_GAP)
    if objects.isdisjoint(sentence.stems[after]) or sentence.denies(place):
        return False
    return OWN.isdisjoint(sentence.atoms[place : after.stop]) and PRONOUNS.isdisjoint(
        sentence.atoms[place + 1 : place + 2]
    )


def _stems(written: str) -> frozenset[str]:
    return frozenset(stem(word) for word in written.split("|"))


def _delegating() -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    for pattern in DELEGATING:
        verbs, _, objects = pattern.partition(" * ")
        yield tuple(sorted(_stems(verbs))), _stems(objects)


_DELEGATING: Final = tuple(_delegating())
