"""Escaping of text for safe display: nothing unprintable, and no look-alikes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import takewhile
from typing import TypeAlias

from phylactery_chassis.util.look_alikes import ASCII_OF

from phylactery_riskgate.domain.model import Mark

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are invisible when printed."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the writing direction (Unicode TR 9)."""

POSING_MARKS = frozenset(
    "\u02d0\u02f8\u0589\u05c3\u16ec\u1735\u1803\u1809\u2024\u2041\u2044\u205a\u2215\u2216\u2236\u2571"
    "\u27cb\u27cd\u29f5\u29f8\u29f9\u2f02\u2f03\u3002\u31d3\u31d4\ua60e\ua789\ufe30\ufe68\uff0e\uff0f"
    "\uff1a\uff20\uff3c\uff61\U0001d20f\U0001d23a\U0001d23b"
)
"""Marks that look like one of . / : @ or the backslash in a path or an address, so that it reads as another one.

They are those of Unicode TS 39's confusables.txt (15.1) without those that NFKC maps to one of them.
"""

_NO_CHARACTERS = frozenset({"Cc", "Co", "Cs", "Cn"})
_BLANKS = frozenset({"Cf", "Zl", "Zp", "Zs"})
_LATIN_1_END = 0x100
_FIRST_PAIR = 0x10000
"""From here on JSON writes a character as two surrogates (RFC 8259, section 7)."""
_MAX_MARKS = 3
"""The number of combining marks on one letter that occurs in languages; more cover their neighbours."""

_WORD = re.compile(r"\\.|([^\W_]+)")
"""A word, or an escaped character: the n of a line break does not belong to a word."""

_CLOSE_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "GEORGIAN", "LISU"})
"""Scripts with look-alike letters; no language mixes two of them in a word."""


Escape: TypeAlias = "tuple[int, str, Mark]"
"""A character to escape: its position, its replacement, and the reason."""

_Posing: TypeAlias = "tuple[int, int, dict[str, Mark]]"
"""A word's bounds, its look-alike characters, and their kind."""

_BLOCK = 4_096
"""The number of characters examined together; more if a word continues."""
_BREAK = re.compile(r"(?<!\\)(?=[\W_])")
_KINDS = 4_096
"""The number of characters whose kind is cached: some alphabets."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """Text that is safe to show; ``marks`` says what was escaped, and whether it was cut off."""

    text: str
    marks: frozenset[Mark] = frozenset()


def make_visible(text: str, limit: int) -> VisibleText:
    """Escape everything that could deceive a reader as backslash-u, and cut at ``limit`` characters.

    Escaped are: control characters, bidirectional marks, zero-width and other invisible characters, stacked combining
    marks, characters that are another form of an ASCII letter or digit, and letters of another script in a Latin word,
    or imitating one.
    """
    looked_at = text[: limit + 1]
    if looked_at.isascii() and looked_at.isprintable():
        return VisibleText(text) if len(text) <= limit else VisibleText(text[: limit - 1] + "…", frozenset({Mark.CUT}))
    count, found = fitting(escapes(looked_at), len(looked_at), limit)
    marks = {mark for _, _, mark in found}
    if count == len(text):
        return VisibleText(written(text, found), frozenset(marks))
    count, found = fitting(found, count, limit - 1)
    return VisibleText(written(text[:count], found) + "…", frozenset(marks | {Mark.CUT}))


def escapes(text: str) -> Iterator[Escape]:
    """Yield the characters to escape, first to last, examining the text lazily."""
    for block in _blocks(text):
        posing = _posing_words(text, *block)
        for begin, end in _pieces(*block):
            yield from _escapes_of(text, begin, end, posing)


def escapes_backwards(text: str) -> Iterator[Escape]:
    """Yield the same last to first, with positions counted from the end: that of the last character is 0."""
    last = len(text) - 1
    for block in reversed([*_blocks(text)]):
        posing = _posing_words(text, *block)
        for begin, end in reversed([*_pieces(*block)]):
            found = _escapes_of(text, begin, end, posing)
            yield from ((last - place, piece, mark) for place, piece, mark in reversed(found))


def fitting(found: Iterable[Escape], length: int, room: int) -> tuple[int, list[Escape]]:
    """Return how many of the characters fit into a room, and the escapes among them.

    Escapes after the first that does not fit are not examined.
    """
    kept: list[Escape] = []
    at = size = 0
    for escape in found:
        place, piece, _ = escape
        grown = size + place - at
        if grown + len(piece) > room:
            length = place
            break
        at, size = place + 1, grown + len(piece)
        kept.append(escape)
    return min(length, at + room - size), kept


def written(text: str, found: Iterable[Escape]) -> str:
    """Return a text with its escapes applied."""
    parts: list[str] = []
    at = 0
    for place, piece, _ in found:
        parts += (text[at:place], piece)
        at = place + 1
    return "".join((*parts, text[at:]))


def _blocks(text: str) -> Iterator[tuple[int, int]]:
    """Yield the bounds of blocks; none splits a word, nor a backslash from the character it escapes."""
    begin = 0
    while begin < len(text):
        found = _BREAK.search(text, begin + _BLOCK)
        end = len(text) if found is None else found.start()
        yield begin, end
        begin = end


def _pieces(begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the bounds of a block's pieces: one, unless a long word makes it large."""
    return ((at, min(at + 2 * _BLOCK, end)) for at in range(begin, end, 2 * _BLOCK))


def _escapes_of(text: str, begin: int, end: int, words: list[_Posing]) -> list[Escape]:
    """Return the escapes of one piece. The result for a kind of character is computed once."""
    piece = text[begin:end]
    if piece.isascii() and piece.isprintable():
        return []
    kinds = set(piece)
    marks = {char: mark for char in kinds if (mark := _mark(char))}
    combining = {char for char in kinds if unicodedata.combining(char)}
    posing = {
        place: how[text[place]]
        for start, stop, how in words
        for place in range(max(start, begin), min(stop, end))
        if text[place] in how
    }
    if not (marks or combining or posing):
        return []
    piled = _piled_before(text, begin) if combining else 0
    found: list[Escape] = []
    for place, char in enumerate(piece, begin):
        piled = piled + 1 if char in combining else 0
        mark = posing.get(place) or marks.get(char) or (Mark.PILED_UP if piled > _MAX_MARKS else None)
        if mark:
            found.append((place, _escaped(char), mark))
    return found


def _piled_before(text: str, index: int) -> int:
    """Count the combining marks that end before a position, up to the limit that matters."""
    before = text[max(0, index - _MAX_MARKS) : index]
    return sum(1 for _ in takewhile(unicodedata.combining, reversed(before)))


@lru_cache(maxsize=_KINDS)
def _mark(char: str) -> Mark | None:
    """Return why a character is escaped regardless of its neighbours."""
    if char.isascii():
        return None if char.isprintable() else Mark.CONTROL
    category = unicodedata.category(char)
    if char in _BIDI:
        return Mark.BIDI
    if category in _NO_CHARACTERS:
        return Mark.CONTROL
    if (
        category in _BLANKS
        or char in _INVISIBLE
        or "\ufe00" <= char <= "\ufe0f"
        or "\U000e0100" <= char <= "\U000e01ef"
    ):
        return Mark.INVISIBLE
    # ª, º and ² are common in Spanish; beyond Latin-1 a second form of an ASCII letter or digit is a disguise.
    disguised = ord(char) >= _LATIN_1_END and category[0] in "LN" and unicodedata.normalize("NFKC", char).isascii()
    return Mark.LOOK_ALIKE if disguised or char in POSING_MARKS else None


def _posing_words(text: str, begin: int, end: int) -> list[_Posing]:
    """Yield the bounds of words that contain look-alikes, and which characters those are.

    These are: letters of another script in a word that has Latin ones, or in a word of mixed look-alike scripts; digits
    of another script next to ASCII; words made only of letters that look like ASCII; and Latin look-alikes.
    """
    if text[begin:end].isascii():
        return []
    found = ((*match.span(1), match.group(1)) for match in _WORD.finditer(text, begin, end) if match.group(1))
    posing = ((start, stop, _posing_in(frozenset(word))) for start, stop, word in found if not word.isascii())
    return [one for one in posing if one[2]]


def _posing_in(chars: frozenset[str]) -> dict[str, Mark]:
    """Return the look-alike characters of a word, and their kind; their order does not matter."""
    letters = {char for char in chars if char.isalpha()}
    foreign = {char for char in letters if not _latin(char)}
    digits = {char for char in chars if _foreign_digit(char)}
    mixed = len(foreign) < len(letters) or len({_script(char) for char in foreign} & _CLOSE_SCRIPTS) > 1
    found: dict[str, Mark] = {}
    if mixed or all(_twin(char) for char in foreign):
        found |= dict.fromkeys(foreign, Mark.MIXED_SCRIPT if mixed else Mark.LOOK_ALIKE)
    if digits and any(char.isascii() for char in chars):
        found |= dict.fromkeys(digits, Mark.MIXED_SCRIPT)
    return found | {char: Mark.LOOK_ALIKE for char in letters if _latin(char) and char in ASCII_OF}


def _foreign_digit(char: str) -> bool:
    return (char.isdecimal() and not char.isascii()) or (char in ASCII_OF and not char.isalpha())


@lru_cache(maxsize=_KINDS)
def _twin(char: str) -> bool:
    return char in ASCII_OF or unicodedata.normalize("NFKC", char) in ASCII_OF


@lru_cache(maxsize=_KINDS)
def _latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith(("LATIN", "FEMININE", "MASCULINE", "MICRO"))


@lru_cache(maxsize=_KINDS)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


@lru_cache(maxsize=_KINDS)
def _escaped(char: str) -> str:
    point = ord(char)
    if point < _FIRST_PAIR:
        return f"\\u{point:04x}"
    point -= _FIRST_PAIR
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"
