"""Names of a tool's object, from the phrases and name in its catalog entry."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.languages import ARTICLES, SMALL
from phylactery_riskgate.domain.intent.words import Words
from phylactery_riskgate.domain.model import Asks, CatalogTool

_ANY: Final = "*"
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_SHORTEST_STEM: Final = 3
_ENDINGS: Final = (
    *("selo", "sela", "selos", "selas", "melo", "mela", "melos", "melas", "noslo", "nosla", "iendo", "ando"),
    *("les", "los", "las", "nos", "ing", "ies", "ed", "es", "me", "te", "le", "lo", "la", "se"),
    *("ar", "er", "ir", "as", "os", "an", "en", "s", "e", "a", "o", "y", "r", "i"),
)


def stem(atom: str) -> str:
    """Return the stem of a Spanish or English word, so that its forms are equal; crude but deterministic."""
    cut = True
    while cut:
        cut = False
        for ending in _ENDINGS:
            if atom.endswith(ending) and len(atom) - len(ending) >= _SHORTEST_STEM:
                atom = atom[: -len(ending)]
                cut = True
                break
    return atom


def picks(words: Words, tool: CatalogTool) -> bool:
    """Return True if the user picks the tool's object by an order, by the names in its phrases or name."""
    if not words.picked:
        return False
    named = {one for phrase in _phrases(tool.asks, tool.name) for one in phrase[1:]}
    return not {stem(atom) for atom in words.picked if atom not in SMALL}.isdisjoint(named)


def nouns(tool: CatalogTool) -> frozenset[str]:
    """Return the stems of the names of the tool's object, from its phrases and its name."""
    return _nouns(tool.asks, tool.name)


@lru_cache(maxsize=1_024)
def _nouns(asks: Asks, name: str) -> frozenset[str]:
    return frozenset(one for phrase in _phrases(asks, name) for one in phrase)


@lru_cache(maxsize=1_024)
def _phrases(asks: Asks, name: str) -> tuple[tuple[str, ...], ...]:
    """Return the stems of each phrase, and of the name if it has more than one word: delete_file."""
    called = _stems(_CAMEL.sub("_", name).replace("_", " ").replace(".", " ").replace("-", " "))
    said = (_stems(text) for text in (*asks.phrases_en, *asks.phrases_es))
    return (*(one for one in said if one), *((called,) if len(called) > 1 else ()))


def _stems(text: str) -> tuple[str, ...]:
    atoms = (atom for word in text.split() if word != _ANY for atom in folding.atoms_of(folding.fold(word)))
    return tuple(stem(atom) for atom in atoms if atom not in ARTICLES)
