"""Prints of free text: a 32-bit number for each token, and for each two consecutive tokens.

Prints show whether a text contains a value, and nothing else: neither what it says nor in which order. Numbers for each
three consecutive tokens ("triples") show whether much of another text is contained in it. A result has thousands of
tokens, so nearly all of the work per token runs in C, and for all texts at once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress, groupby, repeat
from typing import Final
from zlib import crc32

from phylactery_riskgate.domain.intent.languages import MONTHS
from phylactery_riskgate.domain.intent.origin.literals import FARTHEST, dates_of, figured_dates, spoken_dates

_FACTOR: Final = 0x9E3779B1
"""Odd, so that the print of "a b" differs from those of "a c" and "c b", and from those of "b a" and "ab"."""
_LANE_BYTES: Final = 8
_WITHIN: Final = b".@+_'&-"
"""Characters allowed between the letters and digits of a token."""
_BETWEEN_DIGITS: Final = {b":": b"\x80", b"/": b"\x81", b",": b"\x82"}
"""Characters allowed only between digits, and a non-ASCII byte to represent them there."""
_JOINT: Final = re.compile(rb"[:/,](?<=[0-9][:/,])(?=[0-9])")
_FIGURES: Final = bytes.maketrans(b"123456789/,", b"000000000::")
_JOINED_FIGURES: Final = b"0:0"
"""The replacement of one of these within a token, once that is done."""
_KEPT: Final = bytes(byte if byte in _WITHIN or bytes([byte]).isalnum() else 32 for byte in range(128))
_BREAK, _END = b"\xff", b"\n"
"""A separator between two texts, which is not in ASCII, and its replacement."""
_SPACED: Final = _KEPT + b"".join(_BETWEEN_DIGITS).ljust(127) + _END
"""Replaces everything between tokens by spaces."""
_LETTERS: Final = b":"
"""Sorts after all digits and before all letters."""
_MONTHS: Final = frozenset(crc32(month.encode()) for month in MONTHS)
_AT_ONCE: Final = 64 * 1024
"""The number of characters processed together: about as many as a result may have prints."""


def prints(tokens: Sequence[str]) -> list[int]:
    """Return the prints of a text: of each token, and of each two consecutive ones."""
    ones = [crc32(token.encode()) for token in tokens]
    return [*ones, *_pairs(ones)]


def triples(tokens: Sequence[str]) -> Sequence[int]:
    """Return the prints of each three consecutive tokens."""
    ones = [crc32(token.encode()) for token in tokens]
    return _triples(ones, _pairs(ones))


def whole_print(tokens: Sequence[str]) -> int:
    """Return the print of a text that is a value by itself."""
    return crc32(f"w:{' '.join(tokens)}".encode())


def day_print(date: str) -> int:
    """Return the print of a day."""
    return crc32(f"d:{date}".encode())


def token_prints(tokens: Sequence[str], most: int) -> tuple[set[int], bool]:
    """Return the same for a tokenized text."""
    counted = tokens[:most]
    return {*prints(counted), *map(day_print, dates_of(counted))}, len(tokens) > most


def cheap_prints(texts: Sequence[str]) -> Iterator[tuple[set[int], int, Sequence[int]] | None]:
    """Return each text's prints, token count and triples; None for text that is long or not ASCII.

    The texts are processed together: the overhead per call would exceed the time of a short text.
    """
    ends = accumulate(map(len, texts))
    for _, batch in groupby(zip(texts, ends, strict=True), lambda one: one[1] // _AT_ONCE):
        some = [text for text, _ in batch]
        cheap = [text.isascii() and len(text) <= _AT_ONCE for text in some]
        read = iter(_ascii_prints(list(compress(some, cheap))))
        yield from (next(read) if one else None for one in cheap)


def _ascii_prints(texts: Sequence[str]) -> list[tuple[set[int], int, Sequence[int]]]:
    lines = [line.split() for line in _spaced(texts).split(_END)]
    # Texts repeat their words, so each word is processed once.
    words = list({*chain.from_iterable(lines)})
    tokens = list(map(bytes.strip, words, repeat(_WITHIN)))
    codes = {word: crc32(token) for word, token in zip(words, tokens, strict=True) if token}
    if len(codes) < len(words):  # punctuation alone is not a token
        lines = [list(filter(codes.__contains__, line)) for line in lines]
    days = _figured_days(words, tokens)
    ones = list(map(codes.__getitem__, chain.from_iterable(lines)))
    pairs = _pairs(ones)
    threes = _triples(ones, pairs)
    read: list[tuple[set[int], int, Sequence[int]]] = []
    start = 0
    for line in lines:
        end = start + len(line)
        found = {*ones[start:end], *pairs[start : max(end - 1, 0)]}
        if days:
            found.update(chain.from_iterable([days[word] for word in days.keys() & line]))
        if not _MONTHS.isdisjoint(found) and _may_speak_of_days(line, ones[start:end]):
            said = [word.strip(_WITHIN).decode() for word in line]
            found.update(day_print(date) for date, _ in spoken_dates(said))
        read.append((found, len(line), threes[start : max(end - 2, start)]))
        start = end
    return read


def _may_speak_of_days(line: Sequence[bytes], ones: Sequence[int]) -> bool:
    """Return True if a number is near the name of a month: "may", for one, is mostly not a month."""
    months = [place for place, one in enumerate(ones) if one in _MONTHS]
    near = chain.from_iterable(line[max(place - FARTHEST, 0) : place + FARTHEST] for place in months)
    return any(word.lstrip(_WITHIN) < _LETTERS for word in near)


def _spaced(texts: Sequence[str]) -> bytes:
    """Return the texts with spaces for everything between tokens, and ``_END`` between two texts.

    What is between two spaces is a token, except for punctuation at its ends.
    """
    joined = _BREAK.join([text.encode() for text in texts])
    if _JOINED_FIGURES in joined.translate(_FIGURES):
        joined = _JOINT.sub(lambda mark: _BETWEEN_DIGITS[mark[0]], joined)
    return joined.translate(_SPACED)


def _figured_days(words: Sequence[bytes], tokens: Sequence[bytes]) -> dict[bytes, list[int]]:
    """Return the words whose tokens are days in figures, and the prints of these days."""
    figures = [(word, token.decode()) for word, token in zip(words, tokens, strict=True) if token < _LETTERS]
    if not any(map(bool, figured_dates([token for _, token in figures]))):
        return {}
    days = {word: list(map(day_print, figured_dates([token]))) for word, token in figures}
    return {word: found for word, found in days.items() if found}


def _pairs(ones: Sequence[int]) -> Sequence[int]:
    """Return one * _FACTOR + other, modulo 2**32, for each number and its successor."""
    return _joined(ones[:-1], ones[1:])


def _triples(ones: Sequence[int], pairs: Sequence[int]) -> Sequence[int]:
    """Return the same for each pair and the number after it."""
    return _joined(pairs[:-1], ones[2:])


def _joined(firsts: Sequence[int], others: Sequence[int]) -> Sequence[int]:
    """Combine two sequences of 32-bit numbers at once, each in 64 bits of a large integer."""
    count = len(firsts)
    if not count:
        return ()
    lanes = int.from_bytes(array("Q", firsts).tobytes(), "little")
    both = lanes * _FACTOR + int.from_bytes(array("Q", others).tobytes(), "little")
    halves = memoryview(both.to_bytes((count + 1) * _LANE_BYTES, "little")).cast("I")
    return halves[: 2 * count : 2].tolist()
