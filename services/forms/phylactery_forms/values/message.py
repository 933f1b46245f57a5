"""A message as values are searched in it: cleaned of invisible characters, folded, with places in what was written."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from phylactery_understanding.language.vocabulary import Vocabulary
from phylactery_understanding.language.word_files import FOLDER, entries

from phylactery_forms.values.model import LANGUAGES, Found

MAX_CHARACTERS: Final = 4_000
"""In a longer message only texts and addresses are searched: it is not an answer to a question."""
_DASHES: Final = dict.fromkeys("‐‑‒–—−", "-")
_QUOTES: Final = dict.fromkeys("’‘`´ʼ", "'")
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cn", "Co", "Cs"})
_KEPT: Final = frozenset("\n\t")
_WORD: Final = re.compile(r"[^\W_]+")
_QUESTION: Final = re.compile(r"[?¿]")
_WORDS: Final = Path(__file__).parent / "words"


@dataclass(frozen=True, slots=True)
class Message:
    """``text`` without invisible characters, and ``plain``, the same folded: equally long, so places are shared."""

    text: str
    plain: str
    places: tuple[int, ...]
    """The place of each character in what was written."""
    written: int
    """The length of what was written."""

    def found(self, value: str, start: int, end: int, filler: frozenset[str]) -> Found:
        """Return a value with its span in what was written."""
        return Found(value, *self.span(start, end), self.is_whole(start, end, filler))

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return a span in what was written."""
        if end <= start:
            return (0, 0)
        return self.places[start], self.places[end - 1] + 1

    def is_whole(self, start: int, end: int, filler: frozenset[str]) -> bool:
        """Return True if nothing but filler is beside a span."""
        before, after = self.plain[:start], self.plain[end:]
        if _QUESTION.search(before) or _QUESTION.search(after):
            return False
        return all(one in filler for rest in (before, after) for one in _WORD.findall(rest))


def read_message(text: str) -> Message:
    """Return a message to search in."""
    if text.isascii() and text.isprintable():
        return Message(text, text.lower(), tuple(range(len(text))), len(text))
    kept, plain, places = list[str](), list[str](), list[int]()
    for place, one in enumerate(text):
        category = unicodedata.category(one)
        if category in _INVISIBLE and one not in _KEPT:
            continue
        if category in {"Mn", "Me"}:
            composed = unicodedata.normalize("NFC", kept[-1] + one) if kept else ""
            if len(composed) == 1:
                kept[-1] = composed
            continue
        kept.append(" " if category == "Zs" else one)
        plain.append(_plain(one))
        places.append(place)
    return Message("".join(kept), "".join(plain), tuple(places), len(text))


def _plain(one: str) -> str:
    """Return a character without case, width and accent."""
    if one in _DASHES:
        return _DASHES[one]
    if one in _QUOTES:
        return _QUOTES[one]
    if one in "ºª°" or unicodedata.category(one) == "No":  # ½, ², ①: no digits of a number
        return one
    folded = unicodedata.normalize("NFKD", one).lower()
    return folded[:1] if folded else one


def fold(text: str) -> str:
    """Return a text as it is in ``Message.plain``, with single spaces."""
    return " ".join(read_message(text).plain.split())


@cache
def _own() -> Vocabulary:
    return Vocabulary(_WORDS)


def words(name: str) -> frozenset[str]:
    """Return a set of words of this package, of every language together, folded."""
    return frozenset(map(fold, _own().words(name)))


def groups(name: str) -> Mapping[Any, tuple[str, ...]]:
    """Return the folded words of each key of a mapping of this package."""
    return {key: tuple(map(fold, some)) for key, some in _own().groups(name).items()}


@cache
def known(name: str) -> Mapping[str, Any]:
    """Return the key of each folded word of a mapping that the understanding library has for Spanish and English.

    Its own accessors mix all its languages, of which some have the same word for another thing.
    """
    files = [FOLDER / language / "vocabulary.yaml" for language in LANGUAGES]
    found = [entry.value for file in files for entry in entries(file) if entry.name == name]
    return {fold(word): key for part in found for key, some in part.items() for word in some}


@cache
def filler(kind: str) -> frozenset[str]:
    """Return the words that may stand beside a value of a type and say nothing: my phone is …, please."""
    own = groups("filler")
    return frozenset((*own["any"], *own.get(kind, ())))


def alternatives(some: Iterable[str]) -> str:
    """Return the expression for any of some folded words, the longest first."""
    spelled = (re.escape(one).replace(r"\ ", r"\s+") for one in sorted(set(some), key=lambda one: (-len(one), one)))
    return "(?:" + "|".join(spelled) + ")"
