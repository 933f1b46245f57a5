"""One user's index as arrays and as the bytes they are stored in.

A document is a number the user never sees, given once and never again. What ranking needs of every document stands in
blocks of records; which documents hold a term, and how often, stands in postings. Both are little-endian, in ascending
order of number, and know nothing of any other user: no text of one moves the ranking of another.
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
        ("length", "<u4"),  # words
        ("thread", "<u8"),  # of its thread_id, 0 where it has none
        ("sequence", "<i8"),  # its place in the thread, 0 where it has none
        ("valid_us", "<i8"),
        ("invalid_us", "<i8"),
        ("tie", "<u8"),  # of its content: what orders equals, whatever order they were written in
        ("layer", "u1"),
        ("kind", "u1"),
        ("trust", "u1"),
    ]
)
POSTING: Final = np.dtype([("number", "<u4"), ("count", "<u2")])
RECORD_BLOCK: Final = 256
"""Documents to a stored block of records: a write rewrites one, 13 KB."""
POSTING_BLOCK: Final = 4_096
"""Documents to a stored block of a term's postings: a write rewrites one of each of its terms, at most 24 KB."""
MAX_COUNT: Final = 65_535


def label(text: str) -> int:
    """Return 64 bits of SHA-256 that stand for a text in a record; never 0."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") or 1


def pack_records(records: Iterable[tuple[Any, ...]]) -> bytes:
    """Return the stored form of records, given in the order of RECORD's fields."""
    return np.array(list(records), dtype=RECORD).tobytes()


def unpack_records(blocks: Iterable[bytes]) -> Records:
    """Return all records of blocks given in ascending order."""
    return np.frombuffer(b"".join(blocks), dtype=RECORD)


def pack_postings(postings: Iterable[tuple[int, int]]) -> bytes:
    """Return the stored form of a term's (number, count) pairs."""
    return np.array([(number, min(count, MAX_COUNT)) for number, count in postings], dtype=POSTING).tobytes()


def unpack_postings(blocks: Iterable[bytes]) -> Records:
    """Return all postings of blocks given in ascending order."""
    return np.frombuffer(b"".join(blocks), dtype=POSTING)


def without(body: bytes, dtype: np.dtype[np.void], number: int) -> bytes:
    """Return a stored block without a document; empty where nothing is left."""
    rows = np.frombuffer(body, dtype=dtype)
    return bytes(rows[rows["number"] != number].tobytes())
