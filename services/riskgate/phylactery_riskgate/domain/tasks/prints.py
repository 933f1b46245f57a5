"""Prints of free text: a 32-bit number for each of its tokens, and one for each two that follow one another.

They tell whether a text holds a value, and nothing else of it: neither what it says nor in which order. A result has
thousands of tokens, so nearly all that is done for each of them runs in C.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from itertools import chain, filterfalse
from typing import Final
from zlib import crc32

from phylactery_riskgate.domain.tasks import folding
from phylactery_riskgate.domain.tasks.languages import MONTHS
from phylactery_riskgate.domain.tasks.literals import dates_of, figured_dates, spoken_dates

_FACTOR: Final = 0x9E3779B1
"""Odd, so that "a b" has the print of no "a c" and no "c b"; and it has neither that of "b a" nor that of "ab"."""
_LANE_BITS, _LANE_BYTES = 64, 8
_TOKEN: Final = re.compile(folding.PLAIN_TOKEN.pattern.encode())
_WITHIN: Final = b".@+_'&-"
"""What may stand between the letters and digits of a token."""
_BETWEEN_DIGITS: Final = {b":": b"\x80", b"/": b"\x81", b",": b"\x82"}
"""What may too, but between digits alone, and a byte to stand for it there that is none of ASCII."""
_JOINT: Final = re.compile(rb"[:/,](?<=[0-9][:/,])(?=[0-9])")
_KEPT: Final = bytes(byte if byte in _WITHIN or bytes([byte]).isalnum() else 32 for byte in range(128))
_SPACED: Final = _KEPT + b"".join(_BETWEEN_DIGITS).ljust(128)
"""Makes a space of everything that stands between tokens."""
_LETTERS: Final = b":"
"""Sorts behind all digits and before all letters."""
_MONTHS: Final = frozenset(month.encode() for month in MONTHS)


def prints(tokens: Sequence[str]) -> list[int]:
    """Answers the prints of a text: of every token, and of every two that follow one another."""
    ones = [crc32(token.encode()) for token in tokens]
    return [*ones, *_pairs(ones)]


def day_print(date: str) -> int:
    """Answers the print of a day."""
    return crc32(f"d:{date}".encode())


def text_prints(folded: str, most: int) -> tuple[set[int], bool]:
    """Answers the prints of the first tokens of a text and of the days they name, and whether it has more tokens."""
    found = _ascii_prints(folded, most) if folded.isascii() else None
    if found is not None:
        return found, False
    tokens = folding.first_tokens(folded, most + 1)
    counted = tokens[:most]
    return {*prints(counted), *map(day_print, dates_of(counted))}, len(tokens) > most


def _ascii_prints(folded: str, most: int) -> set[int] | None:
    """Answers the same for ASCII, a third sooner where most words are tokens, and None where there are more tokens."""
    joined = _JOINT.sub(lambda mark: _BETWEEN_DIGITS[mark[0]], folded.encode())
    words = joined.translate(_SPACED).replace(b". ", b" ").split(None, most)
    if len(words) > most:
        return None
    # Most words are tokens as they stand.
    parts = {word: _TOKEN.findall(word) for word in set(filterfalse(bytes.isalnum, words))}
    if any(found != [word] for word, found in parts.items()):
        words = list(chain.from_iterable([parts.get(word, (word,)) for word in words]))
        if len(words) > most:
            return None
    ones = list(map(crc32, words))
    found = {*ones, *_pairs(ones)}
    found.update(map(day_print, figured_dates([token.decode() for token in chain.from_iterable(parts.values())])))
    if not _MONTHS.isdisjoint(words) and min(words) < _LETTERS:
        found.update(day_print(date) for date, _ in spoken_dates([word.decode() for word in words]))
    return found


def _pairs(ones: Sequence[int]) -> Sequence[int]:
    """Answers one * _FACTOR + other, modulo 2**32, for each one and the other behind it.

    All of them at once, each in 64 bits of a large number.
    """
    count = len(ones) - 1
    if count < 1:
        return ()
    lanes = int.from_bytes(struct.pack(f"<{count + 1}Q", *ones), "little")
    both = lanes * _FACTOR + (lanes >> _LANE_BITS)
    return struct.unpack_from(f"<{2 * count}I", both.to_bytes((count + 2) * _LANE_BYTES, "little"))[::2]
