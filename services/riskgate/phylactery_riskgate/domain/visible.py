"""Makes text safe to show: nothing unprintable, nothing that looks like something else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from phylactery_riskgate.domain import look_alikes
from phylactery_riskgate.domain.model import Mark

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that print as nothing at all."""

_BIDI = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of reading (Unicode TR 9)."""

_NO_CHARACTERS = frozenset({"Cc", "Co", "Cs", "Cn"})
_BLANKS = frozenset({"Cf", "Zl", "Zp", "Zs"})
_LATIN_1_END = 0x100
_FIRST_PAIR = 0x10000
"""From here on JSON writes a character as two surrogates (RFC 8259, section 7)."""
_MAX_MARKS = 3
"""So many combining marks on one letter write a language; more paint over their neighbours."""

_WORD = re.compile(r"\\.|([^\W_]+)")
"""A word, or what a backslash escapes: the n of a line break belongs to no word."""

_CLOSE_SCRIPTS = frozenset({"LATIN", "CYRILLIC", "GREEK", "COPTIC", "ARMENIAN", "CHEROKEE", "GEORGIAN", "LISU"})
"""Scripts whose letters pass for one another's; no language writes a word in two of them."""


@dataclass(frozen=True, slots=True)
class VisibleText:
    """Text that is safe to show; ``marks`` says what was written as an escape, and whether it was cut off."""

    text: str
    marks: frozenset[Mark] = frozenset()


def make_visible(text: str, limit: int) -> VisibleText:
    """Writes everything that could deceive a reader as a backslash-u escape, and cuts at ``limit`` characters.

    These are: control characters, bidirectional marks, zero-width and other invisible characters, piled-up marks,
    characters that are another form of an ASCII letter or digit, and letters of another script in, or posing as, a
    Latin word.
    """
    looked_at = text[: limit + 1]
    if looked_at.isascii() and looked_at.isprintable():
        return VisibleText(text) if len(text) <= limit else VisibleText(text[: limit - 1] + "…", frozenset({Mark.CUT}))
    pieces: list[str] = []
    marks: set[Mark] = set()
    size = 0
    for piece, mark in visible_pieces(looked_at):
        if size + len(piece) > limit:
            return VisibleText(_cut(pieces, size, limit), frozenset(marks | {Mark.CUT}))
        if mark:
            marks.add(mark)
        pieces.append(piece)
        size += len(piece)
    return VisibleText("".join(pieces), frozenset(marks))


def visible_pieces(text: str) -> Iterator[tuple[str, Mark | None]]:
    """Yields each character of a text as it is shown, and why it is not shown as it is, None where it is."""
    posing = _posing_letters(text)
    piled = 0
    for index, char in enumerate(text):
        piled = piled + 1 if unicodedata.combining(char) else 0
        mark = posing.get(index) or _mark(char) or (Mark.PILED_UP if piled > _MAX_MARKS else None)
        yield (_escaped(char) if mark else char), mark


def _cut(pieces: list[str], size: int, limit: int) -> str:
    while size > limit - 1:
        size -= len(pieces.pop())
    return "".join(pieces) + "…"


def _mark(char: str) -> Mark | None:
    """Answers why a character is not shown as it is, whatever stands around it."""
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
    # ª, º and ² are everyday Spanish; past Latin-1 a second form of an ASCII letter or digit is a disguise.
    disguised = ord(char) >= _LATIN_1_END and category[0] in "LN" and unicodedata.normalize("NFKC", char).isascii()
    return Mark.LOOK_ALIKE if disguised or char in look_alikes.MARKS else None


def _posing_letters(text: str) -> dict[int, Mark]:
    """Finds letters that are not what their word makes of them.

    These are: letters of another script in a word that has Latin ones, or in a word of scripts that pass for one
    another; digits of another script beside ASCII; words made only of letters that print like ASCII; and Latin letters
    that do.
    """
    found: dict[int, Mark] = {}
    for match in _WORD.finditer(text):
        word = match.group(1)
        if word is None or word.isascii():
            continue
        letters = [(match.start(1) + index, char) for index, char in enumerate(word) if char.isalpha()]
        foreign = [(index, char) for index, char in letters if not _latin(char)]
        digits = [match.start(1) + index for index, char in enumerate(word) if _foreign_digit(char)]
        mixed = len(foreign) < len(letters) or len({_script(char) for _, char in foreign} & _CLOSE_SCRIPTS) > 1
        if mixed or all(_twin(char) for _, char in foreign):
            found |= dict.fromkeys((index for index, _ in foreign), Mark.MIXED_SCRIPT if mixed else Mark.LOOK_ALIKE)
        if digits and any(char.isascii() for char in word):
            found |= dict.fromkeys(digits, Mark.MIXED_SCRIPT)
        found |= {index: Mark.LOOK_ALIKE for index, char in letters if _latin(char) and char in look_alikes.LETTERS}
    return found


def _foreign_digit(char: str) -> bool:
    return (char.isdecimal() and not char.isascii()) or (char in look_alikes.LETTERS and not char.isalpha())


def _twin(char: str) -> bool:
    return char in look_alikes.LETTERS or unicodedata.normalize("NFKC", char) in look_alikes.LETTERS


def _latin(letter: str) -> bool:
    return letter.isascii() or unicodedata.name(letter, "").startswith(("LATIN", "FEMININE", "MASCULINE", "MICRO"))


def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _escaped(char: str) -> str:
    point = ord(char)
    if point < _FIRST_PAIR:
        return f"\\u{point:04x}"
    point -= _FIRST_PAIR
    return f"\\u{0xD800 + (point >> 10):04x}\\u{0xDC00 + (point & 0x3FF):04x}"
