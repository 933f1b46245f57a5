"""Text folding to one byte per character, so that no spelling hides a value, with a map back to the original.

Digits and letters of every width and style become ASCII, accents are removed, every dash is "-" and every space " ";
invisible characters are removed. Positions in the folded text map back to code points of the original.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

from phylactery_chassis.inspection.kinds import FindingKind

LETTER = "æ"
"""Replaces every letter that is not a form of an ASCII one. A fixed point of the folding, like SYMBOL."""
SYMBOL = "¤"
"""Replaces everything else; no pattern contains it."""
MASKED = "\x01"
"""Replaces a redaction placeholder; no text folds to it."""
_GONE = 0

_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0")
_SPACES = frozenset("\t\u2800")
_LINE_ENDS = frozenset("\n\r\v\f\x1c\x1d\x1e\x1f\x85\u2028\u2029")
_DOTS = frozenset("\u00b7\u2024\u2027\u2219\u22c5\u30fb\u3002\uff61")
_DASHES = frozenset("\u2212\u02d7\u2043")
_QUOTES = frozenset("«»“”„‟〝〞")
_APOSTROPHES = frozenset("‘’‚‛´`")
_TAGS = range(0xE0000, 0xE1000)
_REMOVED = frozenset({"Cc", "Cf", "Mn", "Me"})
_SPACE_CATEGORY, _DASH_CATEGORY, _MONEY_CATEGORY = "Zs", "Pd", "Sc"

_PLACEHOLDER = re.compile("«(?:" + "|".join(FindingKind) + ")»")


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text. ``gaps`` holds, for each removed character, its position among those that were kept."""

    data: bytes = field(repr=False)
    gaps: tuple[int, ...] = field(default=(), repr=False)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original, in code points, for a span of the folded text."""
        if not self.gaps:
            return start, end
        return start + bisect_right(self.gaps, start), end + bisect_right(self.gaps, end - 1)


def readings(text: str) -> tuple[Folded, ...]:
    """Fold a text: once, or twice if it contains invisible characters, which may join words or separate them."""
    data = text.encode("latin-1", "phylactery.fold").translate(_LATIN_1)
    if "«" in text:
        data = _without_placeholders(text, data)
    if _GONE not in data:
        return (Folded(data),)
    taken_out = [place for place, byte in enumerate(data) if byte == _GONE]
    joined = Folded(data.translate(None, b"\x00"), tuple(place - count for count, place in enumerate(taken_out)))
    return joined, Folded(data.replace(b"\x00", b" "))


def masked_kinds(text: str) -> frozenset[FindingKind]:
    """Return the kinds of values that a redaction removed from a text."""
    return frozenset(FindingKind(found[1:-1]) for found in _PLACEHOLDER.findall(text)) if "«" in text else frozenset()


def _without_placeholders(text: str, data: bytes) -> bytes:
    """Replace redaction placeholders, which must not be found again."""
    hidden = bytearray(data)
    for found in _PLACEHOLDER.finditer(text):
        hidden[found.start() : found.end()] = MASKED.encode("latin-1") * (found.end() - found.start())
    return bytes(hidden)


@lru_cache(maxsize=16_384)
def _folded(char: str) -> int:
    """Fold one character."""
    for into, members in _GROUPS:
        if char in members:
            return ord(into)
    if char.isascii() and char.isprintable():
        return ord(char)
    category = unicodedata.category(char)
    if category in _REMOVED or char in _INVISIBLE or ord(char) in _TAGS:
        return _GONE
    if category in _CATEGORIES:
        return ord(_CATEGORIES[category])
    return ord(_plainest(char) or (LETTER if category[0] in "LM" else SYMBOL))


def _plainest(char: str) -> str:
    """Return the ASCII letter or digit that a character is a form of, or ''."""
    base = [part for part in unicodedata.normalize("NFKD", char) if not unicodedata.combining(part)]
    if len(base) == 1 and base[0].isascii() and base[0].isprintable():
        return base[0]
    digit = unicodedata.digit(char, None)
    return "" if digit is None else str(digit)


_GROUPS = (
    ("\n", _LINE_ENDS),
    (" ", _SPACES),
    (".", _DOTS),
    ("-", _DASHES),
    ('"', _QUOTES),
    ("'", _APOSTROPHES),
)
_CATEGORIES = {_SPACE_CATEGORY: " ", _DASH_CATEGORY: "-", _MONEY_CATEGORY: "$"}
# SYMBOL is itself a currency sign and must stay unchanged: folding must be idempotent.
_LATIN_1 = bytes(code if chr(code) in {LETTER, SYMBOL} else _folded(chr(code)) for code in range(256))


def _fold_foreign(error: UnicodeError) -> tuple[bytes, int]:
    """Fold a run of characters beyond Latin-1, as an encoding error handler."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return bytes(map(_folded, error.object[error.start : error.end])), error.end


codecs.register_error("phylactery.fold", _fold_foreign)
