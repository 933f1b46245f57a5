"""What changed of approvals, in one order for each tenant.

A change is noted in the transaction that makes it, without a place: replicas commit in no order that could be foreseen.
Its place is given afterwards, to what is committed alone, by one replica at a time; so places are seen in their order,
and no reader passes one that comes later.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals import Approval, ApprovalState
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.approvals import with_votes
from phylactery_riskgate.store.tables import approval_changes, approvals

_AT_ONCE = 1_000
_TENANTS_AT_ONCE = 100
_OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)
_C = approval_changes.c


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which approvals somebody watches; an empty field wants all."""

    tenant: str
    requester: str = ""
    state: ApprovalState | None = None
    thread_id: str = ""
    approval_id: str = ""

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Answers the conditions on an approval, but for its state."""
        given = (
            (approvals.c.requester, self.requester),
            (approvals.c.thread_id, self.thread_id),
            (approvals.c.id, self.approval_id),
        )
        return [approvals.c.tenant == self.tenant, *(column == value for column, value in given if value)]


@dataclass(frozen=True, slots=True)
class Changed:
    """One change: its place, and the approval as it left it."""

    position: int
    approval: Approval


def unplaced(connection: Connection, tenant: str) -> bool:
    """Says whether a tenant has changes without a place."""
    query = sa.select(_C.version).where(_C.tenant == tenant, _C.position == 0).limit(1)
    return connection.execute(query).first() is not None


def last_position(connection: Connection, tenant: str) -> int:
    """Answers the last place that was given, 0 before the first."""
    return connection.execute(sa.select(sa.func.max(_C.position)).where(_C.tenant == tenant)).scalar_one() or 0


def first_position(connection: Connection, tenant: str) -> int:
    """Answers the first place whose change is kept, 0 before the first."""
    query = sa.select(sa.func.min(_C.position)).where(_C.tenant == tenant, _C.position > 0)
    return connection.execute(query).scalar_one() or 0


def place_changes(connection: Connection, tenant: str) -> int:
    """Gives places to changes that have none, at most 1,000, and answers how many; 0 where another replica does it.

    They go by their time, and those of one approval by their number even if the clock was set back between them.
    """
    if not locks.try_take(connection, _lock_name(tenant)):
        return 0
    time = sa.func.max(_C.change_us).over(partition_by=_C.approval_id, order_by=_C.version)
    timed = sa.select(_C.approval_id, _C.version, time.label("time")).where(_C.tenant == tenant, _C.position == 0)
    inner = timed.subquery()
    order = (inner.c.time, inner.c.approval_id, inner.c.version)
    number = sa.func.row_number().over(order_by=order).label("number")
    rows = sa.select(inner.c.approval_id, inner.c.version, number).order_by(*order).limit(_AT_ONCE).subquery()
    begin = last_position(connection, tenant)
    update = (
        sa.update(approval_changes)
        .where(_C.approval_id == rows.c.approval_id, _C.version == rows.c.version)
        .values(position=rows.c.number + begin)
    )
    return connection.execute(update).rowcount


def find_old(connection: Connection, before_us: int) -> list[str]:
    """Answers tenants with changes from before a time that are not their newest, at most 100."""
    later = approval_changes.alias()
    newer = sa.exists().where(later.c.tenant == _C.tenant, later.c.position > _C.position)
    # as an expression: for the bare column SQLite reads the whole table in the order of tenants instead of what is old
    tenant = _C.tenant + ""
    query = sa.select(tenant).distinct().where(_C.change_us < before_us, sa.or_(_C.position == 0, newer))
    return list(connection.execute(query.limit(_TENANTS_AT_ONCE)).scalars())


def prune(connection: Connection, tenant: str, before_us: int) -> int:
    """Drops a tenant's changes up to the last one from before a time, at most 1,000, and answers how many.

    The newest stays, so that places go on from it. 0 where another replica gives or drops places.
    """
    if not locks.try_take(connection, _lock_name(tenant)):
        return 0
    of_tenant = (_C.tenant == tenant, _C.position > 0, _C.position < last_position(connection, tenant))
    old = sa.select(sa.func.max(_C.position)).where(*of_tenant, _C.change_us < before_us)
    end = min(connection.execute(old).scalar_one() or 0, first_position(connection, tenant) + _AT_ONCE - 1)
    return connection.execute(sa.delete(approval_changes).where(*of_tenant, _C.position <= end)).rowcount


def changes_after(connection: Connection, wanted: Wanted, position: int, limit: int) -> list[Changed]:
    """Answers changes behind a place, in their order."""
    query = (
        sa.select(
            approvals,
            *(column.label(f"then_{column.name}") for column in _C if column.name not in ("approval_id", "tenant")),
        )
        .join_from(approval_changes, approvals, _C.approval_id == approvals.c.id)
        .where(_C.tenant == wanted.tenant, _C.position > position, *wanted.conditions())
    )
    if wanted.state is not None:
        query = query.where(_C.state == wanted.state)
    rows = connection.execute(query.order_by(_C.position).limit(limit)).all()
    return [
        Changed(
            row.then_position,
            replace(
                approval,
                state=ApprovalState(row.then_state),
                decide_us=row.then_decide_us,
                decided_by=row.then_decided_by,
                closed_reason=row.then_closed_reason,
                version=row.then_version,
                votes=approval.votes[: row.then_votes],
            ),
        )
        for row, approval in zip(rows, with_votes(connection, wanted.tenant, rows), strict=True)
    ]


def open_approvals(connection: Connection, wanted: Wanted, after: tuple[int, str], limit: int) -> list[Changed]:
    """Answers approvals that are open, oldest first, after (create_us, id), each with the place of its last change.

    The place is 0 where that change has none yet.
    """
    at, last_id = after
    later = sa.or_(approvals.c.create_us > at, sa.and_(approvals.c.create_us == at, approvals.c.id > last_id))
    states = _OPEN if wanted.state is None else tuple(one for one in _OPEN if one is wanted.state)
    last_change = sa.and_(_C.approval_id == approvals.c.id, _C.version == approvals.c.version)
    query = (
        sa.select(approvals, _C.position.label("then_position"))
        .outerjoin_from(approvals, approval_changes, last_change)
        .where(*wanted.conditions(), approvals.c.state.in_(states), later)
    )
    rows = connection.execute(query.order_by(approvals.c.create_us, approvals.c.id).limit(limit)).all()
    found = with_votes(connection, wanted.tenant, rows)
    # one that is older than the table of changes has none, and none is on its way
    return [
        Changed(1 if row.then_position is None else row.then_position, one)
        for row, one in zip(rows, found, strict=True)
    ]


def _lock_name(tenant: str) -> str:
    return f"changes of {tenant}"
