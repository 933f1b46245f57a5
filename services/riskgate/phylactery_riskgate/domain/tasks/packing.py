"""The bytes of a piece: its JSON, deflated where that pays, and behind it the prints of a result as plain integers.

Prints are like random numbers, and so neither worth writing as text nor any shorter for deflating.
"""

from __future__ import annotations

import struct
import zlib
from itertools import accumulate, pairwise
from typing import Final

import orjson

from phylactery_riskgate.domain.tasks.words import Piece

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
    """Answers the bytes of a piece, and how many it counts as: about those of its JSON."""
    prints: dict[str, list[int]] = piece["p"] if piece["k"] == "result" else {}
    numbers = [number for found in prints.values() for number in found]
    counts = {"p": {item: len(found) for item, found in prints.items()}} if prints else {}
    plain = orjson.dumps(piece | counts)
    form, text = _PLAIN, plain
    if len(plain) > _WORTH_BYTES:
        small = zlib.compress(plain, _LEVEL)
        if len(small) < len(plain):
            form, text = _DEFLATED, small
    head = _HEAD.pack(form, len(text))
    return head + text + struct.pack(f"<{len(numbers)}I", *numbers), len(plain) + _PRINT_WEIGHT * len(numbers)


def unpacked(bytes_: bytes) -> Piece:
    """Reads what packed wrote. Raises ValueError where it is of another form."""
    if bytes_[0] not in {_PLAIN, _DEFLATED}:
        raise ValueError("a piece of another version")
    try:
        form, size = _HEAD.unpack_from(bytes_)
        end = _HEAD.size + size
        text = bytes_[_HEAD.size : end]
        piece: Piece = orjson.loads(zlib.decompress(text) if form == _DEFLATED else text)
        numbers = struct.unpack_from(f"<{(len(bytes_) - end) // _PRINT_BYTES}I", bytes_, end)
    except (struct.error, zlib.error) as error:
        raise ValueError("no piece of a task") from error
    if piece["k"] == "result":
        ends = list(accumulate(piece["p"].values(), initial=0))
        piece["p"] = {item: numbers[first:last] for item, (first, last) in zip(piece["p"], pairwise(ends), strict=True)}
    return piece
