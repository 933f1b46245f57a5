"""Store of the audit log: heads, entries, sealed values, signed checkpoints and subtree heads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query, RowInsert, Update
from phylactery_chassis.errors import DataLoss
from sqlalchemy.engine import Connection

from phylactery_riskgate.audit.merkle import Frontier
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import audit_checkpoints, audit_entries, audit_logs, audit_subtrees, audit_values

_BATCH = 500

# built once: building a statement costs several times what SQLite takes to run it
_HEAD = sa.select(audit_logs).where(audit_logs.c.name == sa.bindparam("log"))
_HEAD_LOCKED = _HEAD.with_for_update()
_VALUES = Query(
    sa.select(audit_values.c.sealed).where(
        audit_values.c.log == sa.bindparam("log"),
        audit_values.c.position == sa.bindparam("position"),
        audit_values.c.tenant == sa.bindparam("tenant"),
    )
)
_CHECKPOINT = Query(
    sa.select(audit_checkpoints.c.size).where(
        audit_checkpoints.c.log == sa.bindparam("log"), audit_checkpoints.c.size == sa.bindparam("size")
    )
)
_ADD_CHECKPOINT = RowInsert(audit_checkpoints, "log", "size", "note", "sign_us")
_SIGNED = Update(
    sa.update(audit_logs)
    .where(audit_logs.c.name == sa.bindparam("log"), audit_logs.c.signed_size < sa.bindparam("size"))
    .values(signed_size=sa.bindparam("size"))
)


@dataclass(frozen=True, slots=True)
class Head:
    """The state of a log: frontier, signed size, id of the data key of its values, and latest time."""

    frontier: Frontier
    signed_size: int
    data_key_id: str
    last_us: int


@dataclass(frozen=True, slots=True)
class Place:
    """The place of a record: the log's name, and its index in it."""

    log: str
    index: int


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """One entry as stored in the log."""

    index: int
    leaf: bytes
    record: bytes


class Label(NamedTuple):
    """The search fields of an entry, as in its record, except that its time is never before that of its predecessor."""

    tenant: str
    subject: str
    kind: str
    time_us: int
    decision_id: str = ""


def create_log(connection: Connection, name: str, data_key_id: str) -> None:
    """Create an empty log."""
    connection.execute(
        sa.insert(audit_logs).values(name=name, size=0, frontier=b"", signed_size=0, data_key_id=data_key_id, last_us=0)
    )


def lock_names(connection: Connection) -> None:
    """Exclude others from creating a log until the commit. Raise BusyError."""
    locks.take(connection, "names of audit logs")


def find_foreign_key(connection: Connection, data_key_id: str) -> tuple[str, str] | None:
    """Return the name of a log that has a data key other than this, and that key's id, or None."""
    query = sa.select(audit_logs.c.name, audit_logs.c.data_key_id).where(audit_logs.c.data_key_id != data_key_id)
    row = connection.execute(query.order_by(audit_logs.c.name).limit(1)).one_or_none()
    return None if row is None else (row.name, row.data_key_id)


def newest_us(connection: Connection) -> int:
    """Return the time of the newest entry of all logs, 0 without one."""
    return int(connection.execute(sa.select(sa.func.max(audit_logs.c.last_us))).scalar() or 0)


def find_head(connection: Connection, name: str, *, lock: bool = False) -> Head | None:
    """Return the head, or None if there is no such log; with lock, other writers are excluded until the commit.

    Raise DataLoss if the row was altered.
    """
    row = connection.execute(_HEAD_LOCKED if lock else _HEAD, {"log": name}).one_or_none()
    if row is None:
        return None
    try:
        frontier = Frontier.from_bytes(row.size, raw_bytes(row.frontier))
    except ValueError:
        raise DataLoss("INTERNAL", f"the head of the log '{name}' is damaged: restore a backup") from None
    return Head(frontier, row.signed_size, row.data_key_id, row.last_us)


def log_names(connection: Connection) -> list[str]:
    """Return the names of all logs."""
    return list(connection.execute(sa.select(audit_logs.c.name).order_by(audit_logs.c.name)).scalars())


def add_checkpoint(connection: Connection, name: str, size: int, note: str, now_us: int) -> None:
    """Store a signed head, unless an auditor's request, perhaps to another process, stored one of this size."""
    at = {"log": name, "size": size}
    if _CHECKPOINT.one(connection, at) is None:
        _ADD_CHECKPOINT.run(connection, [(name, size, note.encode(), now_us)])
    _SIGNED.run(connection, at)


def checkpoints(connection: Connection, name: str) -> Iterator[str]:
    """Yield every signed head, smallest first."""
    query = sa.select(audit_checkpoints.c.note).where(audit_checkpoints.c.log == name)
    for note in connection.execute(query.order_by(audit_checkpoints.c.size)).scalars():
        yield raw_bytes(note).decode(errors="replace")


def entries(connection: Connection, name: str, size: int | None = None) -> Iterator[StoredEntry]:
    """Yield the first ``size`` entries in order, or all, without holding them in memory."""
    query = sa.select(audit_entries).where(audit_entries.c.log == name).order_by(audit_entries.c.position)
    if size is not None:
        query = query.where(audit_entries.c.position < size)
    for row in connection.execution_options(yield_per=_BATCH).execute(query):
        yield StoredEntry(row.position, raw_bytes(row.leaf), raw_bytes(row.record))


def leaves(connection: Connection, name: str, size: int) -> list[bytes]:
    """Return the leaf hashes of the first size entries, for proofs."""
    query = sa.select(audit_entries.c.leaf).where(audit_entries.c.log == name, audit_entries.c.position < size)
    return list(connection.execute(query.order_by(audit_entries.c.position)).scalars())


def find_values(connection: Connection, tenant: str, name: str, index: int) -> bytes | None:
    """Return the sealed values of an entry, or None if it has none or they were erased."""
    row = _VALUES.one(connection, {"log": name, "position": index, "tenant": tenant})
    return None if row is None else raw_bytes(row[0])


def erase_values(connection: Connection, tenant: str, name: str, index: int) -> bool:
    """Erase the sealed values of an entry; the log still verifies. Return True if there were any."""
    result = connection.execute(
        sa.delete(audit_values).where(
            audit_values.c.log == name, audit_values.c.position == index, audit_values.c.tenant == tenant
        )
    )
    return result.rowcount > 0


def raw_bytes(value: bytes | str) -> bytes:
    """Return a column's bytes: SQLite returns text if a row was altered by hand."""
    return value.encode() if isinstance(value, str) else bytes(value)


TIER_BITS = 8
TIERS = 3

# built once: a proof runs about thirty queries
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
    """Return the stored hashes of a tier (0 is the leaves) in the half-open range from first to end."""
    given = {"log": log, "first": first, "end": end}
    found = connection.execute(_HEADS, given | {"tier": tier}) if tier else connection.execute(_LEAVES, given)
    return {position: raw_bytes(value) for position, value in found}


def kept(connection: Connection, log: str) -> dict[int, int]:
    """Return the number of stored heads per tier: contiguous from the first."""
    columns = audit_subtrees.c
    query = sa.select(columns.tier, sa.func.max(columns.position)).where(columns.log == log).group_by(columns.tier)
    found = {tier: last + 1 for tier, last in connection.execute(query)}
    return {tier: found.get(tier, 0) for tier in range(1, TIERS + 1)}


def keep(connection: Connection, log: str, tier: int, heads: Mapping[int, bytes]) -> None:
    """Store new heads of a tier. Raise IntegrityError if another process was faster."""
    known = kept(connection, log)[tier]
    new = [
        {"log": log, "tier": tier, "position": at, "head": head} for at, head in sorted(heads.items()) if at >= known
    ]
    if new:
        connection.execute(sa.insert(audit_subtrees), new)
