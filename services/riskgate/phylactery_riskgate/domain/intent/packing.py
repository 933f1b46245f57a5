"""Binary encoding of a piece: its JSON, deflated if that is shorter, followed by a result's prints as raw integers.

Prints look random, so writing them as text or deflating them would not save space.
"""

from __future__ import annotations

import struct
import zlib
from array import array
from typing import Final

import orjson

from phylactery_riskgate.domain.intent.words import Piece

_PLAIN, _DEFLATED = 3, 4
"""The format version of the JSON. Earlier versions had prints computed in another way."""
_HEAD: Final = struct.Struct("<BI")
"""The format byte, and the number of JSON bytes that follow."""
_WORTH_BYTES: Final = 512
"""A shorter JSON is stored uncompressed."""
_LEVEL: Final = 1
"""The fastest level: it halves an index; the next levels gain a tenth in twice the time."""
_PRINT_BYTES: Final = 4
_PRINT_WEIGHT: Final = 11
"""The bytes that a print counts as, those of its JSON; its in-memory form takes several times more."""


def packed(piece: Piece) -> tuple[bytes, int]:
    """Return the bytes of a piece, and its counted size: about that of its JSON, and four bytes per triple."""
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
    prints = sum(sum(counts[name].values()) for name in ("p", "s", "f", "r") if name in counts)
    size = len(plain) + _PRINT_WEIGHT * prints + len(numbers) - _PRINT_BYTES * prints
    return head + text + numbers, size


def unpacked(bytes_: bytes) -> Piece:
    """Decode the result of ``packed``. Raise ValueError if it has another format."""
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
    return tuple(name for name in ("p", "d", "s", "f", "r") if name in piece) if piece["k"] == "result" else ()
