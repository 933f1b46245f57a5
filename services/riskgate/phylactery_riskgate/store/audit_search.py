"""Search in the audit logs: by time across all logs, by place in one, always for one tenant."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.store.audit import Place, StoredEntry, raw_bytes
from phylactery_riskgate.store.tables import audit_checkpoints, audit_entries, audit_logs, audit_values

GLOBAL_KINDS = frozenset(
    {"bundle_activated", "bundle_refused", "policies_changed", "key_changed", "heads_adopted", "frozen", "unfrozen"}
)
"""Kinds of RiskGate's own records (SYSTEM_TENANT) that every auditor sees: they concern all tenants."""
SYSTEM_TENANT = ""

_BATCH = 250
_ORDER = (audit_entries.c.time_us, audit_entries.c.log, audit_entries.c.position)

Position = tuple[int, str, int]
"""The position of an entry among those of all logs: time in microseconds, log, index."""


@dataclass(frozen=True, slots=True)
class LogSize:
    """One log: its number of entries, and how many of them its newest signed head covers."""

    name: str
    size: int
    signed_size: int


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """An entry with its log, and the time it is sorted by."""

    log: str
    time_us: int
    kind: str
    stored: StoredEntry

    @property
    def place(self) -> Place:
        """Return its place in its log."""
        return Place(self.log, self.stored.index)

    @property
    def position(self) -> Position:
        """Return its position among the entries of all logs."""
        return self.time_us, self.log, self.stored.index


@dataclass(frozen=True, slots=True)
class Bounds:
    """Search criteria on columns outside the record; empty or 0 for none."""

    log: str = ""
    kind: str = ""
    subject: str = ""
    start_us: int = 0
    end_us: int = 0


def log_sizes(connection: Connection) -> list[LogSize]:
    """Return the size of every log, sorted by name."""
    query = sa.select(audit_logs.c.name, audit_logs.c.size, audit_logs.c.signed_size).order_by(audit_logs.c.name)
    return [LogSize(*row) for row in connection.execute(query)]


def scan(
    connection: Connection,
    tenant: str,
    bounds: Bounds,
    *,
    after: Position | None = None,
    oldest_first: bool = False,
    limit: int,
    kinds: frozenset[str] = frozenset(),
) -> Iterator[FoundEntry]:
    """Yield at most ``limit`` of a tenant's entries of all logs, by time, without holding them in memory.

    With ``kinds``, only these kinds are included.
    """
    columns = audit_entries.c
    query = sa.select(audit_entries).where(columns.tenant == tenant)
    for column, wanted in ((columns.log, bounds.log), (columns.kind, bounds.kind), (columns.subject, bounds.subject)):
        if wanted:
            query = query.where(column == wanted)
    if kinds:
        query = query.where(columns.kind.in_(kinds))
    if bounds.start_us:
        query = query.where(columns.time_us >= bounds.start_us)
    if bounds.end_us:
        query = query.where(columns.time_us < bounds.end_us)
    if after is not None:
        place = sa.tuple_(*_ORDER)
        query = query.where(place > sa.tuple_(*after) if oldest_first else place < sa.tuple_(*after))
    query = query.order_by(*(column.asc() if oldest_first else column.desc() for column in _ORDER)).limit(limit)
    for row in connection.execute(query, execution_options={"yield_per": _BATCH}):
        yield _found(row)


def visible(
    connection: Connection,
    tenant: str,
    bounds: Bounds,
    *,
    after: Position | None = None,
    oldest_first: bool = False,
    limit: int,
) -> Iterator[FoundEntry]:
    """Yield what a tenant's auditor may see, as ``scan``: its entries, and RiskGate's own that concern all."""
    own, general = (
        scan(connection, of, bounds, after=after, oldest_first=oldest_first, limit=limit, kinds=kinds)
        for of, kinds in ((tenant, frozenset[str]()), (SYSTEM_TENANT, GLOBAL_KINDS))
    )
    yield from islice(heapq.merge(own, general, key=lambda one: one.position, reverse=not oldest_first), limit)


def following(connection: Connection, tenant: str, log: str, first: int, end: int) -> list[FoundEntry]:
    """Return what a tenant's auditor may see of a log, from first to before end: see ``visible``."""
    columns = audit_entries.c
    general = sa.and_(columns.tenant == SYSTEM_TENANT, columns.kind.in_(GLOBAL_KINDS))
    query = sa.select(audit_entries).where(
        columns.log == log,
        columns.position >= first,
        columns.position < end,
        sa.or_(columns.tenant == tenant, general),
    )
    return [_found(row) for row in connection.execute(query.order_by(columns.position))]


def leaves_of(connection: Connection, log: str, first: int, end: int) -> list[tuple[int, bytes]]:
    """Return index and leaf hash of every entry of a log, from first to before end."""
    columns = audit_entries.c
    query = sa.select(columns.position, columns.leaf).where(
        columns.log == log, columns.position >= first, columns.position < end
    )
    return [(at, raw_bytes(leaf)) for at, leaf in connection.execute(query.order_by(columns.position))]


def find_entry(connection: Connection, tenant: str, place: Place) -> FoundEntry | None:
    """Return one entry, of the tenant or of RiskGate itself: see ``visible``."""
    found = following(connection, tenant, place.log, place.index, place.index + 1)
    return found[0] if found else None


_REFUSALS = frozenset({"evaluate_refused", "redeem_refused", "approval_refused", "permit_renewed"})
"""Kinds that a caller can add to a decision again and again; there are few records of the others about one."""


def of_decisions(
    connection: Connection, tenant: str, decision_ids: Collection[str], *, most: int, most_refusals: int
) -> tuple[list[FoundEntry], int]:
    """Return a tenant's entries about decisions, oldest first, and how many refusals are not among them.

    These are the first ``most``, and the newest ``most_refusals`` that refused something or renewed a permit.
    """
    columns = audit_entries.c
    given = sa.text("decision_id != ''")  # as in the index, which a parameter would hide
    about = sa.and_(columns.tenant == tenant, columns.decision_id.in_(decision_ids), given)
    refusal = columns.kind.in_(_REFUSALS)
    query = sa.select(audit_entries).where(about)
    firm = connection.execute(query.where(~refusal).order_by(*_ORDER).limit(most))
    newest = [column.desc() for column in _ORDER]
    refused = connection.execute(query.where(refusal).order_by(*newest).limit(most_refusals)).all()
    count = len(refused)
    if count == most_refusals:
        count = connection.execute(sa.select(sa.func.count()).where(about, refusal)).scalar_one()
    found = sorted((_found(row) for row in [*firm, *refused]), key=lambda one: one.position)
    return found, count - len(refused)


def with_values(connection: Connection, tenant: str, places: Mapping[Place, FoundEntry]) -> list[FoundEntry]:
    """Return the entries whose values still exist."""
    columns = audit_values.c
    query = sa.select(columns.log, columns.position).where(
        columns.tenant == tenant, sa.tuple_(columns.log, columns.position).in_([(p.log, p.index) for p in places])
    )
    return [places[Place(*row)] for row in connection.execute(query)] if places else []


def find_checkpoint(connection: Connection, log: str, size: int) -> str:
    """Return the head signed at exactly this size, or an empty string."""
    columns = audit_checkpoints.c
    note = connection.execute(sa.select(columns.note).where(columns.log == log, columns.size == size)).scalar()
    return "" if note is None else raw_bytes(note).decode(errors="replace")


def newest_checkpoint(connection: Connection, log: str) -> str:
    """Return the signed head of the largest size, or an empty string."""
    columns = audit_checkpoints.c
    query = sa.select(columns.note).where(columns.log == log).order_by(columns.size.desc()).limit(1)
    note = connection.execute(query).scalar()
    return "" if note is None else raw_bytes(note).decode(errors="replace")


def _found(row: Row[tuple[object, ...]]) -> FoundEntry:
    entry = StoredEntry(row.position, raw_bytes(row.leaf), raw_bytes(row.record))
    return FoundEntry(row.log, row.time_us, row.kind, entry)


def records_of_kind(connection: Connection, tenant: str, kind: str) -> Iterator[bytes]:
    """Yield a tenant's records of one kind from every log, oldest first."""
    query = sa.select(audit_entries.c.record).where(audit_entries.c.tenant == tenant, audit_entries.c.kind == kind)
    yield from map(raw_bytes, connection.execute(query.order_by(*_ORDER)).scalars())
