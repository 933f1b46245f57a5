"""The bytes of a piece: its JSON, deflated where that pays, and behind it the prints of a result as plain integers.

Prints are like random numbers, and so neither worth writing as text nor any shorter for deflating.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from typing import Final

import orjson

from phylactery_riskgate.domain.intent.words import Piece

_PLAIN, _DEFLATED = 3, 4
"""How the JSON is kept. There were others, of pieces whose prints were made in another way."""
_HEAD: Final = struct.Struct("<BI")
"""One of these, and how many bytes of JSON follow."""
_WORTH_BYTES: Final = 512
"""A shorter JSON is kept as it is."""
_LEVEL: Final = 1
"""The fastest: it halves an index, and the next levels gain a tenth in twice the time."""
_PRINT_BYTES: Final = 4
_PRINT_WEIGHT: Final = 11
"""Bytes that a print counts as, which are those of its JSON: what is built of it in memory takes several times more."""


def packed(piece: Piece) -> tuple[bytes, int]:
    """Return the bytes of a piece, and how many it counts as: about those of its JSON, and four for each triple."""
    numbered = _numbered(piece)
    numbers = b"".join(array("I", found).tobytes() for name in numbered for found in piece[name].values())
    counts = {name: {item: len(found) for item, found in piece[name].items()} for name in numbered}
    plain = orjson.dumps(piece | counts)
    form, text = _PLAIN, plain
    if len(plain) > _WORTH_BYTES:
        small = zlib.compress(plain, _LEVEL)
        if len(small) < len(plain):
            form, text = _DEFLATED, small
    head = _HEAD.pack(form, len(text))
    prints = sum(counts.get("p", {}).values())
    size = len(plain) + _PRINT_WEIGHT * prints + len(numbers) - _PRINT_BYTES * prints
    return head + text + numbers, size


def unpacked(bytes_: bytes) -> Piece:
    """Read what packed wrote. Raise ValueError where it is of another form."""
    if bytes_[0] not in {_PLAIN, _DEFLATED}:
        raise ValueError("a piece of another version")
    try:
        form, size = _HEAD.unpack_from(bytes_)
        end = _HEAD.size + size
        text = bytes_[_HEAD.size : end]
        piece: Piece = orjson.loads(zlib.decompress(text) if form == _DEFLATED else text)
        numbers = array("I", bytes_[end:])
    except (struct.error, zlib.error) as error:
        raise ValueError("no piece of a task") from error
    start = 0
    for name in _numbered(piece):
        for item, count in piece[name].items():
            piece[name][item] = numbers[start : start + count]
            start += count
    if start != len(numbers):
        raise ValueError("no piece of a task")
    return piece


def _numbered(piece: Piece) -> tuple[str, ...]:
    return tuple(name for name in ("p", "d") if name in piece) if piece["k"] == "result" else ()
