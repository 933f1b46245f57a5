"""Makes text safe to show: nothing unprintable, nothing that looks like something else."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that print as nothing at all."""

_LOOK_ALIKE_MARKS = frozenset(
    "\u2024\u2044\u2215\u29f8\u2236\ua789\uff0e\uff0f\uff1a\uff20\u3002\uff61\u02d0\u0589\u05c3"
)
"""Marks that pass for one of . / : @ in a path or an address."""

_HIDDEN_CATEGORIES = frozenset({"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"})
_LATIN_1_END = 0x100
_FIRST_PAIR = 0x10000
"""From here on JSON writes a character as two surrogates (RFC 8259, section 7)."""
_MAX_MARKS = 3
"""So many combining marks on one letter write a language; more paint over their neighbours."""

_WORD = re.compile(r"[^\W\d_]+")

_LATIN_TWINS = frozenset("аеорсхуіјѕһԁԛԝӏАВЕКМНОРСТХУІЈЅԌԚԜοανικρτυχγΑΒΕΖΗΙΚΜΝΟΡΤΥΧօսոցհյ")
"""Cyrillic, Greek and Armenian letters that print like a Latin one (a subset of Unicode TS 39's confusables)."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """Text that is safe to show; ``altered`` says that something was written as an escape or cut off."""

    text: str
    altered: bool


def make_visible(text: str, limit: int) -> VisibleText:
    """Writes everything that could deceive a reader as a backslash-u escape, and cuts at ``limit`` characters.

    These are: control characters, bidirectional marks, zero-width and other invisible characters, piled-up marks,
    characters that are another form of an ASCII letter or digit, and letters of another script in, or posing as, a
    Latin word.
    """
    looked_at = text[: limit + 1]
    if looked_at.isascii() and looked_at.isprintable():
        return (
            VisibleText(text, altered=False)
            if len(text) <= limit
            else VisibleText(text[: limit - 1] + "…", altered=True)
        )
    foreign = _posing_letters(looked_at)
    pieces: list[str] = []
    size = 0
    altered = False
    marks = 0
    for index, char in enumerate(looked_at):
        marks = marks + 1 if unicodedata.combining(char) else 0
        piece = char
        if index in foreign or marks > _MAX_MARKS or _deceives(char):
            piece = _escaped(char)
            altered = True
        if size + len(piece) > limit:
            return VisibleText(_cut(pieces, size, limit), altered=True)
        pieces.append(piece)
        size += len(piece)
    return VisibleText("".join(pieces), altered)


def _cut(pieces: list[str], size: int, limit: int) -> str:
    while size > limit - 1:
        size -= len(pieces.pop())
    return "".join(pieces) + "…"


def _deceives(char: str) -> bool:
    if char.isascii():
        return not char.isprintable()
    category = unicodedata.category(char)
    if category in _HIDDEN_CATEGORIES or char in _INVISIBLE or char in _LOOK_ALIKE_MARKS:
        return True
    if category == "Zs" or "\ufe00" <= char <= "\ufe0f" or "\U000e0100" <= char <= "\U000e01ef":
        return True
    # ª, º and ² are everyday Spanish; past Latin-1 a second form of an ASCII letter or digit is a disguise.
    return ord(char) >= _LATIN_1_END and category[0] in "LN" and unicodedata.normalize("NFKC", char).isascii()


def _posing_letters(text: str) -> frozenset[int]:
    """The places of letters that are not Latin in a word that has Latin ones, or that could pass for Latin whole."""
    found: set[int] = set()
    for word in _WORD.finditer(text):
        letters = word.group()
        if letters.isascii():
            continue
        foreign = [word.start() + index for index, letter in enumerate(letters) if not _latin(letter)]
        if len(foreign) < len(letters) or all(letter in _LATIN_TWINS for letter in letters):
            found.update(foreign)
    return frozenset(found)


def _latin(letter: str) -> bool:
    if letter.isascii() or not letter.isalpha():
        return True
    return unicodedata.name(letter, "").startswith(("LATIN", "FEMININE", "MASCULINE", "MICRO"))


def _escaped(char: str) -> str:
    point = ord(char)
    if point < _FIRST_PAIR:
        return f"\\u{point:04x}"
    point -= _FIRST_PAIR
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"
