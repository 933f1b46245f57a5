"""Prints of free text: a 32-bit number for each of its tokens, and one for each two that follow one another.

They tell whether a text holds a value, and nothing else of it: neither what it says nor in which order. So do those of
each three that follow one another ("triples"), which tell whether much of another text stands there. A result has
thousands of tokens, so nearly all that is done for each of them runs in C, and for all its texts at once.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain, compress, groupby, repeat
from typing import Final
from zlib import crc32

from phylactery_riskgate.domain.intent import folding
from phylactery_riskgate.domain.intent.languages import MONTHS
from phylactery_riskgate.domain.intent.origin.literals import FARTHEST, dates_of, figured_dates, spoken_dates

_FACTOR: Final = 0x9E3779B1
"""Odd, so that "a b" has the print of no "a c" and no "c b"; and it has neither that of "b a" nor that of "ab"."""
_LANE_BYTES: Final = 8
_WITHIN: Final = b".@+_'&-"
"""What may stand between the letters and digits of a token."""
_BETWEEN_DIGITS: Final = {b":": b"\x80", b"/": b"\x81", b",": b"\x82"}
"""What may too, but between digits alone, and a byte to stand for it there that is none of ASCII."""
_JOINT: Final = re.compile(rb"[:/,](?<=[0-9][:/,])(?=[0-9])")
_FIGURES: Final = bytes.maketrans(b"123456789/,", b"000000000::")
_JOINED_FIGURES: Final = b"0:0"
"""What stands, once that is done, where one of these is part of a token."""
_KEPT: Final = bytes(byte if byte in _WITHIN or bytes([byte]).isalnum() else 32 for byte in range(128))
_BREAK, _END = b"\xff", b"\n"
"""What is put between two texts, which no ASCII has, and what becomes of it."""
_SPACED: Final = _KEPT + b"".join(_BETWEEN_DIGITS).ljust(127) + _END
"""Makes a space of everything that stands between tokens."""
_LETTERS: Final = b":"
"""Sorts behind all digits and before all letters."""
_MONTHS: Final = frozenset(crc32(month.encode()) for month in MONTHS)
_AT_ONCE: Final = 64 * 1024
"""Characters that are read together: about as many as a result may have prints of."""


def prints(tokens: Sequence[str]) -> list[int]:
    """Return the prints of a text: of every token, and of every two that follow one another."""
    ones = [crc32(token.encode()) for token in tokens]
    return [*ones, *_pairs(ones)]


def triples(tokens: Sequence[str]) -> Sequence[int]:
    """Return the prints of every three tokens that follow one another."""
    ones = [crc32(token.encode()) for token in tokens]
    return _triples(ones, _pairs(ones))


def day_print(date: str) -> int:
    """Return the print of a day."""
    return crc32(f"d:{date}".encode())


def text_prints(folded: str, most: int) -> tuple[set[int], bool]:
    """Return the prints of the first tokens of a text and of the days they name, and whether it has more tokens."""
    read = next(cheap_prints([folded])) if most else None
    if read is not None and read[1] <= most:
        return read[0], False
    return token_prints(folding.first_tokens(folded, most + 1), most)


def token_prints(tokens: Sequence[str], most: int) -> tuple[set[int], bool]:
    """Return the same for a text that is cut into tokens already."""
    counted = tokens[:most]
    return {*prints(counted), *map(day_print, dates_of(counted))}, len(tokens) > most


def cheap_prints(texts: Sequence[str]) -> Iterator[tuple[set[int], int, Sequence[int]] | None]:
    """Return the prints of each text, how many tokens it has, and its triples; None for what is not ASCII, or long.

    Many are read at once: what is done for a text, and not for each token, take longer than a short text does.
    """
    ends = accumulate(map(len, texts))
    for _, batch in groupby(zip(texts, ends, strict=True), lambda one: one[1] // _AT_ONCE):
        some = [text for text, _ in batch]
        cheap = [text.isascii() and len(text) <= _AT_ONCE for text in some]
        read = iter(_ascii_prints(list(compress(some, cheap))))
        yield from (next(read) if one else None for one in cheap)


def _ascii_prints(texts: Sequence[str]) -> list[tuple[set[int], int, Sequence[int]]]:
    lines = [line.split() for line in _spaced(texts).split(_END)]
    # Texts repeat their words, so each is looked at once.
    words = list({*chain.from_iterable(lines)})
    tokens = list(map(bytes.strip, words, repeat(_WITHIN)))
    codes = {word: crc32(token) for word, token in zip(words, tokens, strict=True) if token}
    if len(codes) < len(words):  # marks alone are no token
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
    """Return whether a number stands near the name of a month: may, for one, is mostly no month."""
    months = [place for place, one in enumerate(ones) if one in _MONTHS]
    near = chain.from_iterable(line[max(place - FARTHEST, 0) : place + FARTHEST] for place in months)
    return any(word.lstrip(_WITHIN) < _LETTERS for word in near)


def _spaced(texts: Sequence[str]) -> bytes:
    """Return texts with a space for everything that stands between tokens, and ``_END`` between each and the next.

    What stands between two spaces is a token, but for marks at either end of it.
    """
    joined = _BREAK.join([text.encode() for text in texts])
    if _JOINED_FIGURES in joined.translate(_FIGURES):
        joined = _JOINT.sub(lambda mark: _BETWEEN_DIGITS[mark[0]], joined)
    return joined.translate(_SPACED)


def _figured_days(words: Sequence[bytes], tokens: Sequence[bytes]) -> dict[bytes, list[int]]:
    """Return the words whose tokens name days in figures, and the prints of these."""
    figures = [(word, token.decode()) for word, token in zip(words, tokens, strict=True) if token < _LETTERS]
    if not any(map(bool, figured_dates([token for _, token in figures]))):
        return {}
    days = {word: list(map(day_print, figured_dates([token]))) for word, token in figures}
    return {word: found for word, found in days.items() if found}


def _pairs(ones: Sequence[int]) -> Sequence[int]:
    """Return one * _FACTOR + other, modulo 2**32, for each one and the other behind it."""
    return _joined(ones[:-1], ones[1:])


def _triples(ones: Sequence[int], pairs: Sequence[int]) -> Sequence[int]:
    """Return the same for each pair and the one behind it."""
    return _joined(pairs[:-1], ones[2:])


def _joined(firsts: Sequence[int], others: Sequence[int]) -> Sequence[int]:
    """Join numbers of 32 bits two by two, all of them at once, each in 64 bits of a large number."""
    count = len(firsts)
    if not count:
        return ()
    lanes = int.from_bytes(array("Q", firsts).tobytes(), "little")
    both = lanes * _FACTOR + int.from_bytes(array("Q", others).tobytes(), "little")
    halves = memoryview(both.to_bytes((count + 1) * _LANE_BYTES, "little")).cast("I")
    return halves[: 2 * count : 2].tolist()
