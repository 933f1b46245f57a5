"""The Merkle tree of RFC 6962, section 2.1: leaf prefix 0x00, inner node prefix 0x01, SHA-256 throughout.

A log grows through a Frontier, which is all an appender has to keep: the roots of the perfect subtrees, largest first.
Proofs are made from the leaf hashes and checked without them.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256(b"").digest()
_LEAF, _NODE = b"\x00", b"\x01"

Span = tuple[int, int]
"""A half-open range of leaves."""


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of one entry's bytes."""
    return hashlib.sha256(_LEAF + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return hashlib.sha256(_NODE + left + right).digest()


@dataclass(frozen=True, slots=True)
class Frontier:
    """The right edge of a tree of ``size`` leaves: one root per bit set in size, the largest subtree first."""

    size: int = 0
    roots: tuple[bytes, ...] = ()

    def append(self, leaf: bytes) -> Self:
        """Return the frontier after one more leaf hash."""
        roots, carry, size = list(self.roots), leaf, self.size
        while size & 1:
            carry = node_hash(roots.pop(), carry)
            size >>= 1
        return type(self)(self.size + 1, (*roots, carry))

    def root(self) -> bytes:
        """Return the tree head."""
        if not self.roots:
            return EMPTY_ROOT
        head = self.roots[-1]
        for left in reversed(self.roots[:-1]):
            head = node_hash(left, head)
        return head

    def to_bytes(self) -> bytes:
        """Return the concatenated roots; the size is stored separately."""
        return b"".join(self.roots)

    @classmethod
    def from_bytes(cls, size: int, data: bytes) -> Self:
        """Parse what to_bytes wrote. Raise ValueError if it cannot be the frontier of that size."""
        if size < 0 or len(data) != HASH_BYTES * size.bit_count():
            raise ValueError(f"{len(data)} bytes are no frontier of {size} leaves")
        return cls(size, tuple(data[at : at + HASH_BYTES] for at in range(0, len(data), HASH_BYTES)))


def root_of(leaves: Sequence[bytes]) -> bytes:
    """Return the tree head over leaf hashes."""
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.append(leaf)
    return frontier.root()


def inclusion_path(index: int, size: int) -> list[Span]:
    """Return the spans whose heads are the audit path of one leaf, lowest node first (RFC 6962, 2.1.1).

    Raise ValueError out of range.
    """
    if not 0 <= index < size:
        raise ValueError(f"leaf {index} is not in a tree of {size}")
    path, first, end = [], 0, size
    while end - first > 1:
        middle = first + _split(end - first)
        if index < middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((first, middle))
            first = middle
    return path[::-1]


def consistency_path(old_size: int, size: int) -> list[Span]:
    """Return the spans whose heads prove that the first old_size leaves are a prefix (RFC 6962, 2.1.2).

    Raise ValueError out of range.
    """
    if not 0 < old_size <= size:
        raise ValueError(f"a tree of {size} cannot be compared with one of {old_size}")
    path, first, end = [], 0, size
    while old_size != end:
        middle = first + _split(end - first)
        if old_size <= middle:
            path.append((middle, end))
            end = middle
        else:
            path.append((first, middle))
            first = middle
    if first:
        path.append((first, end))
    return path[::-1]


def whole_subtrees(span: Span) -> list[tuple[int, int]]:
    """Return the perfect subtrees of a path's span, left to right, as level and position in that level.

    A span of a path begins where a perfect subtree at least as large as itself could begin, so it is their frontier.
    """
    first, end = span
    subtrees = []
    while first < end:
        level = (end - first).bit_length() - 1
        subtrees.append((level, first >> level))
        first += 1 << level
    return subtrees


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Return True if the leaf hash is at index in the tree of that size and head (RFC 9162, 2.1.3.2)."""
    if not 0 <= index < size or not _hashes(leaf, root, *proof):
        return False
    node, last, head = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if node & 1 or node == last:
            head = node_hash(sibling, head)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            head = node_hash(head, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and hmac.compare_digest(head, root)


def verify_consistency(old_size: int, new_size: int, proof: Sequence[bytes], old_root: bytes, new_root: bytes) -> bool:
    """Return True if the tree of old_size is a prefix of the one of new_size (RFC 9162, 2.1.4.2).

    A comparison with the empty tree proves nothing, so it is False unless both are empty and have the empty head.
    """
    if not 0 <= old_size <= new_size:
        return False
    if old_size == 0:
        return new_size == 0 and not proof and old_root == new_root == EMPTY_ROOT
    if old_size == new_size:
        return not proof and hmac.compare_digest(old_root, new_root)
    if not proof or not _hashes(old_root, new_root, *proof):
        return False
    path = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    node, last = old_size - 1, new_size - 1
    while node & 1:
        node, last = node >> 1, last >> 1
    old_head = new_head = path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if node & 1 or node == last:
            old_head, new_head = node_hash(sibling, old_head), node_hash(sibling, new_head)
            while not node & 1 and node:
                node, last = node >> 1, last >> 1
        else:
            new_head = node_hash(new_head, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and hmac.compare_digest(old_head, old_root) and hmac.compare_digest(new_head, new_root)


def _split(size: int) -> int:
    """Return the largest power of two below size."""
    return 1 << (size - 1).bit_length() - 1


def _hashes(*values: bytes) -> bool:
    return all(len(value) == HASH_BYTES for value in values)
