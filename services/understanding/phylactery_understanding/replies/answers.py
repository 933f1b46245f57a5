"""Classification of a text as a clear yes, a clear no, or unclear.

A text is an answer only if one language's word lists account for every word of it: a yes, courtesy, and words that
point back at what was asked ("yes, please go ahead with that, thanks"). A word in no list, a digit, a question mark or
trailing dots make it unclear: "yes" approves what was shown, "yes, but make it 5" does not.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import cache, cached_property
from typing import Final, Literal, TypeVar, get_args

from phylactery_understanding.language.word_files import lists, of_each_language

Answer = Literal["yes", "no", "unclear"]
_Kind = Literal["yes", "weak", "no", "with", "thanks", "back", "neither"]
_K = TypeVar("_K", bound=str)

FILE: Final = "answers.yaml"
_AGREEING: Final = frozenset({"yes", "weak"})
_BESIDE: Final = frozenset({"with", "thanks"})
_MAX_CHARACTERS: Final = 120
"""A longer text says more than yes or no."""
_UNDECIDED: Final = re.compile(r"[?¿؟？…]|\.\s*\.")
_DASH: Final = re.compile(r"(?<=\S)[ \t]+[-–—]+[ \t]+(?=\S)")
"""A dash between words; at the beginning of a line it may mark what somebody else said."""
_SENTENCE: Final = re.compile(r"\s*[^.!;\n]+")
_IGNORED: Final = re.compile(r"['’`´\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]")
"""Characters that do not change a word: apostrophes, and the variation and skin tone of emoji."""
_STROKES: Final = frozenset("\u0335\u0336\u0337\u0338")
"""What crosses letters out: a crossed-out yes is none."""
_TOKEN: Final = re.compile(r"[^\W\d_]+|[^\s,.!¡;]")
_STRETCHED: Final = re.compile(r"(\w)\1{2,}|(\w)\2+(?!\w)")
"""Stretched letters: "siiii", "nooo", "yess"."""


def read_answer(text: str) -> Answer:
    """Return "yes" or "no" as the answer to what was shown, or "unclear" if the text says anything else."""
    if len(text) > _MAX_CHARACTERS or _UNDECIDED.search(text):
        return "unclear"
    words = plain_words(_DASH.sub(", ", text))
    found = {answer for phrases in _languages() if (answer := _answer(kinds_of(words, phrases))) is not None}
    return found.pop() if len(found) == 1 else "unclear"


def _answer(kinds: Sequence[_Kind]) -> Answer | None:
    """Return the answer that phrases of these kinds give in their order, or None if none of them answers anything."""
    telling = [kind for kind in kinds if kind not in _BESIDE]
    found = {*telling}
    if found <= {"back"}:
        return None
    if found == {"no"}:
        return "no"
    if not found <= _AGREEING | {"back"} or (found == {"weak"} and "thanks" in kinds):
        return "unclear"
    # What it points back at comes behind a yes: "that, yes" tells one thing from another.
    return "yes" if telling[0] in _AGREEING else "unclear"


def begins_with_yes(text: str) -> bool:
    """Return True if a text begins with a clear yes, whatever it goes on with: yes, to the one he wrote.

    A sentence that asks ("yes?", "ok, and who sent it?") or takes it back at once ("yes, no") is none.
    """
    opening = _SENTENCE.match(text)
    if opening is None or _UNDECIDED.search(opening.group()):
        return False
    words = plain_words(text[: opening.end()])
    return any(_answer(_leading(words, phrases)[0]) == "yes" for phrases in _languages())


def says_to_do(text: str) -> bool:
    """Return True if a clear yes says to do what it is about: do it, adelante; but not: yes, ok."""
    words = plain_words(text)
    return read_answer(text) == "yes" and any(
        words[at : at + len(phrase)] == phrase for phrase in _doing() for at in range(len(words))
    )


@cache
def _doing() -> frozenset[tuple[str, ...]]:
    """Return the phrases of every language that say to do something."""
    return frozenset(plain_words(phrase) for content in _contents() for phrase in content.get("doing", ()))


def plain_words(text: str) -> tuple[str, ...]:
    """Return the words without case, accents and stretched letters; each emoji and sign is a separate word."""
    return _words(text, _STRETCHED)


def exact_words(text: str) -> tuple[str, ...]:
    """Return the words as plain_words does, with stretched letters as they are, so that names stay apart."""
    return _words(text, None)


def _words(text: str, stretched: re.Pattern[str] | None) -> tuple[str, ...]:
    plain = unicodedata.normalize("NFKD", _IGNORED.sub("", unicodedata.normalize("NFC", text)).casefold())
    bare = "".join(char for char in plain if not unicodedata.combining(char) or char in _STROKES)
    if stretched is not None:
        bare = stretched.sub(lambda held: held.group(1) or held.group(2), bare)
    return tuple(_TOKEN.findall(bare))


class Phrases(dict[tuple[str, ...], _K]):
    """The kind of each phrase. Several lists are asked about every message, so their size is read once."""

    @cached_property
    def longest(self) -> int:
        """The number of words of the longest phrase; none is added afterwards."""
        return max(map(len, self))


def kinds_of(words: tuple[str, ...], phrases: Phrases[_K]) -> list[_K]:
    """Return the kind of each phrase of the text, longest match first; empty if a word is in no phrase."""
    kinds, place = _leading(words, phrases)
    return kinds if place == len(words) else []


def _leading(words: tuple[str, ...], phrases: Phrases[_K]) -> tuple[list[_K], int]:
    """Return the kinds of the phrases at the beginning of a text, longest match first, and the first place behind."""
    place, kinds = 0, list[_K]()
    while place < len(words):
        ends = range(min(place + phrases.longest, len(words)), place, -1)
        end = next((end for end in ends if words[place:end] in phrases), None)
        if end is None:
            break
        kinds.append(phrases[words[place:end]])
        place = end
    return kinds, place


@cache
def _languages() -> tuple[Phrases[_Kind], ...]:
    """Return the phrases of each language that has a list."""
    return tuple(Phrases(_phrases(one)) for one in _contents())


@cache
def _contents() -> tuple[Mapping[str, Sequence[str]], ...]:
    """Return the lists of each language that has some."""
    return tuple(dict(lists(file)) for file in of_each_language(FILE))


def _phrases(words: Mapping[str, Sequence[str]]) -> Iterator[tuple[tuple[str, ...], _Kind]]:
    for kind in get_args(_Kind):
        for phrase in words.get(kind, ()):
            yield plain_words(phrase), kind
