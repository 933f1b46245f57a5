"""How clearly the user's words ask for what a tool does, by the phrases and examples of its catalog entry."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.model import Asks, CatalogTool
from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.index import Words
from phylactery_riskgate.domain.tasks.languages import DELEGATING, FORGETTING, NEGATIONS, SMALL

NOT_ASKED: Final = 0
HALF_ASKED: Final = 1
CLEARLY_ASKED: Final = 2

_GAP: Final = 5
"""Words a * may stand for, small ones not counted."""
_NEGATION_REACH: Final = 3
_ANY: Final = "*"
_SHORTEST_STEM: Final = 3
_DELEGATION_GAP: Final = 8

_ENDINGS: Final = (
    *("selo", "sela", "selos", "selas", "melo", "mela", "melos", "melas", "noslo", "nosla", "iendo", "ando"),
    *("les", "los", "las", "nos", "ing", "ies", "ed", "es", "me", "te", "le", "lo", "la", "se"),
    *("ar", "er", "ir", "as", "os", "an", "en", "s", "e", "a", "o", "y", "r", "i"),
)


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
    gaps: tuple[bool, ...]


@lru_cache(maxsize=4_096)
def _phrases(asks: Asks) -> tuple[_Phrase, ...]:
    return tuple(phrase for text in (*asks.phrases_en, *asks.phrases_es) if (phrase := _phrase(text)).stems)


@lru_cache(maxsize=4_096)
def _examples(asks: Asks) -> tuple[tuple[str, ...], ...]:
    return tuple(
        tuple(stem(atom) for atom in folding.atoms_of(folding.fold(text)) if atom not in SMALL)
        for text in (*asks.examples_en, *asks.examples_es)
    )


def _phrase(text: str) -> _Phrase:
    stems: list[str] = []
    gaps: list[bool] = []
    gap = False
    for word in text.split():
        if word == _ANY:
            gap = True
            continue
        for atom in folding.atoms_of(folding.fold(word)):
            if atom in SMALL:
                continue
            stems.append(stem(atom))
            gaps.append(gap)
            gap = False
    return _Phrase(tuple(stems), tuple(gaps))


def asked(words: Words, tool: CatalogTool) -> Asked:
    """Says how clearly the words ask for a tool's effect."""
    best = Asked(NOT_ASKED)
    for sentence in sentences(words):
        stems = [stem(atom) for atom in sentence]
        for phrase in _phrases(tool.asks):
            place = _match(phrase, sentence, stems)
            if place is not None:
                return Asked(CLEARLY_ASKED, tuple(sentence[place[0] : place[1]]))
            if best.level == NOT_ASKED and set(phrase.stems) <= set(stems):
                best = Asked(HALF_ASKED, tuple(atom for atom in sentence if stem(atom) in phrase.stems))
        for example in _examples(tool.asks):
            if example and len(example) > 1 and set(example) <= set(stems):
                return Asked(CLEARLY_ASKED, tuple(atom for atom in sentence if stem(atom) in example))
    return best


def sentences(words: Words) -> Iterator[list[str]]:
    """Answers the atoms of each sentence."""
    sentence: list[str] = []
    for place, token in enumerate(words.tokens):
        if place in words.breaks and sentence:
            yield sentence
            sentence = []
        sentence.extend(folding.atoms(token))
    if sentence:
        yield sentence


def _match(phrase: _Phrase, sentence: Sequence[str], stems: Sequence[str]) -> tuple[int, int] | None:
    for start, first in enumerate(stems):
        if first != phrase.stems[0]:
            continue
        place = _follow(phrase, sentence, stems, start)
        if place is not None and not _negated(sentence, start):
            return start, place + 1
    return None


def _follow(phrase: _Phrase, sentence: Sequence[str], stems: Sequence[str], start: int) -> int | None:
    place = start
    for wanted, gap in zip(phrase.stems[1:], phrase.gaps[1:], strict=True):
        passed = 0
        place += 1
        while place < len(stems) and stems[place] != wanted:
            passed += sentence[place] not in SMALL
            if passed > (_GAP if gap else 0):
                return None
            place += 1
        if place >= len(stems):
            return None
    return place


def _negated(sentence: Sequence[str], start: int) -> bool:
    before = sentence[max(start - _NEGATION_REACH, 0) : start]
    at = max((place for place, atom in enumerate(before) if atom in NEGATIONS or atom == "don"), default=-1)
    return at >= 0 and FORGETTING.isdisjoint(before[at:])


def delegated(words: Words) -> bool:
    """Says whether the user pointed at a place that tells what to do."""
    return any(
        _delegates(verbs, objects, [stem(atom) for atom in sentence])
        for sentence in sentences(words)
        for verbs, objects in _DELEGATING
    )


def _delegates(verbs: frozenset[str], objects: frozenset[str], stems: Sequence[str]) -> bool:
    return any(
        first in verbs and not objects.isdisjoint(stems[place + 1 : place + 1 + _DELEGATION_GAP])
        for place, first in enumerate(stems)
    )


_DELEGATING: Final = tuple(
    (
        frozenset(stem(word) for word in pattern.split(" * ")[0].split("|")),
        frozenset(stem(word) for word in pattern.split(" * ")[-1].split("|")),
    )
    for pattern in DELEGATING
)
