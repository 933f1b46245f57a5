"""How clearly the user's words ask for what a tool does, by the phrases and examples of its catalog entry.

What stands in quotes is a value: it fills a place in a phrase and asks for nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.model import Asks, CatalogTool
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.languages import ARTICLES, DELEGATING, FORGETTING, NEGATIONS, SMALL
from phylactery_riskgate.domain.tasks.words import Words

NOT_ASKED: Final = 0
HALF_ASKED: Final = 1
CLEARLY_ASKED: Final = 2

_GAP, _NEXT = 6, 1
"""Words a * may stand for, and how many may stand between two words of a phrase without it; small ones not counted."""
_REACH: Final = 20
"""Words of any kind between two words of a phrase."""
_NEGATION_REACH: Final = 4
_ANY, _QUOTE = "*", "\u2026"
_SHORTEST_STEM: Final = 3
_DELEGATION_GAP: Final = 10
_MAX_STARTS: Final = 32
_MAX_SENTENCES: Final = 400
_MAX_SENTENCE: Final = 400
_SHOWN: Final = 12
_LEAST_EXAMPLE: Final = 2

_ENDINGS: Final = (
    *("selo", "sela", "selos", "selas", "melo", "mela", "melos", "melas", "noslo", "nosla", "iendo", "ando"),
    *("les", "los", "las", "nos", "ing", "ies", "ed", "es", "me", "te", "le", "lo", "la", "se"),
    *("ar", "er", "ir", "as", "os", "an", "en", "s", "e", "a", "o", "y", "r", "i"),
)
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@lru_cache(maxsize=16_384)
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
    """How clearly something is asked for, and the words that say so."""

    level: int
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Phrase:
    stems: tuple[str, ...]
    gaps: tuple[int, ...]


class Sentence:
    """One sentence of the user's words, a quote in it being one word."""

    def __init__(self, atoms: Sequence[str], quoted: Sequence[str]) -> None:
        self.atoms = tuple(atoms)
        self.stems = tuple(stem(atom) for atom in atoms)
        self.said = frozenset((*atoms, *quoted))
        self.places: dict[str, list[int]] = {}
        for place, one in enumerate(self.stems):
            places = self.places.setdefault(one, [])
            if len(places) < _MAX_STARTS:
                places.append(place)

    def denies(self, place: int) -> bool:
        """Says whether what stands at a place is ruled out: do not, never; "do not forget to" asks for it."""
        before = self.atoms[max(place - _NEGATION_REACH, 0) : place]
        at = max((near for near, atom in enumerate(before) if atom in NEGATIONS), default=-1)
        return at >= 0 and FORGETTING.isdisjoint(before[at:])


@lru_cache(maxsize=16)
def sentences(words: Words) -> tuple[Sentence, ...]:
    """Answers the sentences of the words, as many as are looked at."""
    found: list[Sentence] = []
    atoms: list[str] = []
    quoted: list[str] = []
    closes = dict(words.quotes)
    place = 0
    while place < len(words.tokens) and len(found) < _MAX_SENTENCES:
        if (place in words.breaks and atoms) or len(atoms) >= _MAX_SENTENCE:
            found.append(Sentence(atoms, quoted))
            atoms, quoted = [], []
        stop = closes.get(place)
        if stop is None:
            atoms.extend(folding.atoms(words.tokens[place]))
            place += 1
            continue
        atoms.append(_QUOTE)
        quoted.extend(atom for token in words.tokens[place:stop] for atom in folding.atoms(token))
        place = stop
    if atoms:
        found.append(Sentence(atoms, quoted))
    return tuple(found)


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
    stems: list[str] = []
    gaps: list[int] = []
    gap = _NEXT
    for word in text.split():
        if word == _ANY:
            gap = _GAP
            continue
        for atom in folding.atoms_of(folding.fold(word)):
            if atom not in ARTICLES:
                stems.append(stem(atom))
                gaps.append(gap)
                gap = _NEXT
    return _Phrase(tuple(stems), tuple(gaps))


@lru_cache(maxsize=1_024)
def _by_name(name: str) -> tuple[_Phrase, ...]:
    """What a tool is called asks for it half, where the catalog says nothing better: delete_file is delete * file."""
    phrase = _phrase(" * ".join(_CAMEL.sub("_", name).replace("_", " ").replace(".", " ").replace("-", " ").split()))
    return (phrase,) if len(phrase.stems) > 1 else ()


def asked(words: Words, tool: CatalogTool, targets: Sequence[Sequence[str]] = ()) -> Asked:
    """Says how clearly the words ask for a tool's effect; ``targets`` are the atoms of what it would be done to."""
    said = sentences(words)
    found = _clearly(said, tool.asks)
    return found or _half(said, _phrases(tool.asks) or _by_name(tool.name), targets) or Asked(NOT_ASKED)


def _clearly(said: Sequence[Sentence], asks: Asks) -> Asked | None:
    for sentence in said:
        for phrase in _phrases(asks):
            place = _match(phrase, sentence)
            if place is not None:
                return Asked(CLEARLY_ASKED, sentence.atoms[place[0] : place[1]][:_SHOWN])
        for example in _examples(asks):
            if example <= sentence.places.keys():
                shown = tuple(atom for atom in sentence.atoms if stem(atom) in example)
                return Asked(CLEARLY_ASKED, shown[:_SHOWN])
    return None


def _half(said: Sequence[Sentence], phrases: Sequence[_Phrase], targets: Sequence[Sequence[str]]) -> Asked | None:
    """Half asked is a phrase out of order, or its verb with what it would be done to."""
    for sentence in said:
        for phrase in phrases:
            starts = sentence.places.get(phrase.stems[0], ())
            if not starts or all(sentence.denies(start) for start in starts):
                continue
            whole = all(one in sentence.places for one in phrase.stems)
            if whole or any(target and sentence.said.issuperset(target) for target in targets):
                return Asked(HALF_ASKED, tuple(sentence.atoms[start] for start in starts[:1]))
    return None


def _match(phrase: _Phrase, sentence: Sentence) -> tuple[int, int] | None:
    if any(one not in sentence.places for one in phrase.stems):
        return None
    for start in sentence.places[phrase.stems[0]]:
        stop = _follow(phrase, sentence, start)
        if stop is not None and not sentence.denies(start):
            return start, stop + 1
    return None


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


def delegated(words: Words) -> bool:
    """Says whether the user pointed at a place that tells what to do."""
    return any(
        not sentence.denies(place) and not objects.isdisjoint(sentence.stems[place + 1 : place + 1 + _DELEGATION_GAP])
        for sentence in sentences(words)
        for verbs, objects in _DELEGATING
        for verb in verbs
        for place in sentence.places.get(verb, ())
    )


def _stems(written: str) -> frozenset[str]:
    return frozenset(stem(word) for word in written.split("|"))


def _delegating() -> Iterator[tuple[tuple[str, ...], frozenset[str]]]:
    for pattern in DELEGATING:
        verbs, _, objects = pattern.partition(" * ")
        yield tuple(sorted(_stems(verbs))), _stems(objects)


_DELEGATING: Final = tuple(_delegating())
