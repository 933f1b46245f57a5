"""Vectors of one user's memories: unit length, 32-bit floats in blocks, exact comparison.

Exact search over one user's vectors is a matrix-vector product: there is no approximate index to build or tune, and
none that keeps traces of forgotten texts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from phylactery_memory.retrieval.index import Floats, Records

Vector = NDArray[np.float32]

VECTOR_BLOCK: Final = 64
"""Memories per stored block of vectors; a write rewrites one block, 98 KB at 384 dimensions."""
MAX_DIMENSIONS: Final = 8_192
_HEAD: Final = struct.Struct("<II")


def unit(values: Sequence[float]) -> Vector:
    """Return a vector of length 1. Raise ValueError if it is zero, empty, too long or not finite."""
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not 0 < len(vector) <= MAX_DIMENSIONS or not np.isfinite(vector).all():
        raise ValueError("is not a vector of finite numbers")
    length = float(np.linalg.norm(vector))
    if not length or not np.isfinite(length):
        raise ValueError("is a vector without a direction")
    return (vector / length).astype("<f4")


def pack_vectors(vectors: Mapping[int, Vector]) -> bytes:
    """Return the stored form of unit vectors: for each its memory's number, its dimensions and its values."""
    parts: list[bytes] = []
    for number, values in vectors.items():
        row = np.asarray(values, dtype="<f4")
        parts.append(_HEAD.pack(number, len(row)) + row.tobytes())
    return b"".join(parts)


def without_vector(body: bytes, number: int) -> bytes:
    """Return a stored block without a memory's vector; empty if nothing is left."""
    return b"".join(body[start:end] for start, end, found, _ in _rows(body) if found != number)


def cosines(records: Records, blocks: Iterable[bytes], query: Vector) -> Floats:
    """Return each record's cosine with the query; NaN if it has no vector of the same dimensions."""
    width = len(query)
    numbers: list[NDArray[np.uint32]] = []
    values: list[Vector] = []
    row = np.dtype([("number", "<u4"), ("width", "<u4"), ("values", "<f4", (width,))])
    for body in blocks:
        whole = len(body) % row.itemsize == 0
        if whole and ((table := np.frombuffer(body, dtype=row))["width"] == width).all():
            numbers.append(table["number"])
            values.append(table["values"])
    found = np.full(len(records), np.nan, dtype=np.float64)
    if not numbers:
        return found
    wanted = np.concatenate(numbers)
    order = np.argsort(wanted)
    places = np.searchsorted(records["number"], wanted[order])
    near = np.concatenate([(table @ query).astype(np.float64) for table in values])[order]
    known = places < len(records)
    known[known] = records["number"][places[known]] == wanted[order][known]
    found[places[known]] = near[known]
    return found


def _rows(body: bytes) -> Iterable[tuple[int, int, int, int]]:
    """Yield start, end, memory number and dimensions of each vector of a block."""
    at = 0
    while at < len(body):
        number, width = _HEAD.unpack_from(body, at)
        end = at + _HEAD.size + 4 * width
        yield at, end, number, width
        at = end
