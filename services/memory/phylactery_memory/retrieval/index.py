"""One user's index, as arrays and in its stored form.

A document is an internal number, assigned once and never reused. Blocks of records hold what ranking needs of every
document; postings hold which documents contain a term, and how often. Both are little-endian, in ascending order of
number, and independent of other users: no user's text affects another's ranking.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Records = NDArray[np.void]
Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]

RECORD: Final = np.dtype(
    [
        ("number", "<u4"),
        ("length", "<u4"),  # in words
        ("thread", "<u8"),  # of its thread_id, 0 without a thread
        ("sequence", "<i8"),  # its position in the thread, 0 without one
        ("valid_us", "<i8"),
        ("invalid_us", "<i8"),
        ("tie", "<u8"),  # of its content: orders equal scores independently of the order of writing
        ("layer", "u1"),
        ("kind", "u1"),
        ("trust", "u1"),
    ]
)
POSTING: Final = np.dtype([("number", "<u4"), ("count", "<u2")])
RECORD_BLOCK: Final = 256
"""Documents per stored block of records; a write rewrites one block, 13 KB."""
POSTING_BLOCK: Final = 4_096
"""Documents per stored block of a term's postings; a write rewrites one block per term, at most 24 KB."""
MAX_COUNT: Final = 65_535


def label(text: str) -> int:
    """Return 64 bits of SHA-256 that identify a text in a record; never 0."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") or 1


def pack_records(records: Iterable[tuple[Any, ...]]) -> bytes:
    """Return the stored form of records, with fields in the order of RECORD."""
    return np.array(list(records), dtype=RECORD).tobytes()


def unpack_records(blocks: Iterable[bytes]) -> Records:
    """Return all records of blocks in ascending order."""
    return np.frombuffer(b"".join(blocks), dtype=RECORD)


def pack_postings(postings: Iterable[tuple[int, int]]) -> bytes:
    """Return the stored form of a term's (number, count) pairs."""
    return np.array([(number, min(count, MAX_COUNT)) for number, count in postings], dtype=POSTING).tobytes()


def unpack_postings(blocks: Iterable[bytes]) -> Records:
    """Return all postings of blocks in ascending order."""
    return np.frombuffer(b"".join(blocks), dtype=POSTING)


def without(body: bytes, dtype: np.dtype[np.void], number: int) -> bytes:
    """Return a stored block without a document; empty if nothing is left."""
    rows = np.frombuffer(body, dtype=dtype)
    return bytes(rows[rows["number"] != number].tobytes())
