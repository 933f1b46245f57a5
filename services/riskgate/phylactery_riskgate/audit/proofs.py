"""Proofs over a log in the database, from some hundreds of hashes regardless of the log's length."""

from __future__ import annotations

from collections.abc import Sequence

from phylactery_chassis.errors import DataLoss
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.merkle import Frontier, Span, consistency_path, inclusion_path, root_of, whole_subtrees
from phylactery_riskgate.store import audit as rows
from phylactery_riskgate.store.audit import TIER_BITS, TIERS, find_head

_WIDTH = 1 << TIER_BITS
_AT_ONCE = 64
"""Heads computed per batch: 16,384 leaves, about 20 ms."""


class Tree:
    """One log's Merkle tree in the database, up to a durable size."""

    def __init__(self, connection: Connection, log: str) -> None:
        self._connection, self._log = connection, log

    def inclusion(self, index: int, size: int) -> tuple[bytes, list[bytes]]:
        """Return a leaf and its audit path. Raise ValueError out of range, and DataLoss if leaves are missing."""
        leaf = self._hashes(0, index, index + 1)[0]
        return leaf, [self._head(span) for span in inclusion_path(index, size)]

    def consistency(self, old_size: int, size: int) -> list[bytes]:
        """Return the consistency proof. Raise ValueError out of range, and DataLoss if leaves are missing."""
        return [self._head(span) for span in consistency_path(old_size, size)]

    def head(self, size: int) -> bytes:
        """Return the tree head of the first ``size`` entries. Raise DataLoss if leaves are missing."""
        return self._head((0, size))

    def behind(self) -> tuple[int, dict[int, bytes]] | None:
        """Return a tier and at most 64 of its heads that are not stored yet, the lowest first, or None."""
        head = find_head(self._connection, self._log)
        size = 0 if head is None else head.frontier.size
        known = rows.kept(self._connection, self._log)
        for tier in range(1, TIERS + 1):
            there = known[tier - 1] if tier > 1 else size
            first, end = known[tier], min(there // _WIDTH, known[tier] + _AT_ONCE)
            if first < end:
                below = self._hashes(tier - 1, first * _WIDTH, end * _WIDTH)
                return tier, {first + at: root_of(below[at * _WIDTH : (at + 1) * _WIDTH]) for at in range(end - first)}
        return None

    def _head(self, span: Span) -> bytes:
        """Return the head over a span of a path."""
        heads = tuple(self._subtree(level, place) for level, place in whole_subtrees(span))
        return Frontier(span[1] - span[0], heads).root()

    def _subtree(self, level: int, place: int) -> bytes:
        tier = min(level // TIER_BITS, TIERS)
        below = level - tier * TIER_BITS
        return root_of(self._hashes(tier, place << below, (place + 1) << below))

    def _hashes(self, tier: int, first: int, end: int) -> Sequence[bytes]:
        """Return every hash of a tier's span; compute a head that is not stored yet from the tier below."""
        known = rows.hashes(self._connection, self._log, tier, first, end)
        missing = [at for at in range(first, end) if at not in known]
        if missing and tier == 0:
            raise DataLoss("INTERNAL", f"entry {missing[0]} of the log '{self._log}' is missing: restore a backup")
        for at in missing:
            known[at] = root_of(self._hashes(tier - 1, at * _WIDTH, (at + 1) * _WIDTH))
        return [known[at] for at in range(first, end)]
