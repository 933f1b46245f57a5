"""What proofs are made from: leaves, and the heads of perfect subtrees of 256, 65,536 and 16,777,216 entries.

The heads are kept so that a proof reads some hundreds of hashes, however long the log is. They follow from the leaves:
nobody has to trust them, for a proof from a wrong one proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_riskgate.store.audit import raw_bytes
from phylactery_riskgate.store.tables import audit_entries, audit_subtrees

TIER_BITS = 8
TIERS = 3

# Built once: a proof asks some thirty times.
_LEAVES, _HEADS = (
    sa.select(table.c.position, value).where(
        table.c.log == sa.bindparam("log"),
        table.c.position >= sa.bindparam("first"),
        table.c.position < sa.bindparam("end"),
        *more,
    )
    for table, value, more in (
        (audit_entries, audit_entries.c.leaf, ()),
        (audit_subtrees, audit_subtrees.c.head, (audit_subtrees.c.tier == sa.bindparam("tier"),)),
    )
)


def hashes(connection: Connection, log: str, tier: int, first: int, end: int) -> dict[int, bytes]:
    """Answers the hashes of a tier (0 is the leaves) from one place to before another, as far as they are kept."""
    given = {"log": log, "first": first, "end": end}
    found = connection.execute(_HEADS, given | {"tier": tier}) if tier else connection.execute(_LEAVES, given)
    return {position: raw_bytes(value) for position, value in found}


def kept(connection: Connection, log: str) -> dict[int, int]:
    """Answers for each tier how many heads are kept: all from the first on, without a gap."""
    columns = audit_subtrees.c
    query = sa.select(columns.tier, sa.func.max(columns.position)).where(columns.log == log).group_by(columns.tier)
    found = {tier: last + 1 for tier, last in connection.execute(query)}
    return {tier: found.get(tier, 0) for tier in range(1, TIERS + 1)}


def keep(connection: Connection, log: str, tier: int, heads: Mapping[int, bytes]) -> None:
    """Keeps heads of a tier that are not kept yet. Raises IntegrityError when another process was faster."""
    known = kept(connection, log)[tier]
    new = [
        {"log": log, "tier": tier, "position": at, "head": head} for at, head in sorted(heads.items()) if at >= known
    ]
    if new:
        connection.execute(sa.insert(audit_subtrees), new)
