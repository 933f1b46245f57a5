"""Store of approvals, their votes, and their changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.statements import Query, RowInsert, Update
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.approvals.model import Approval, ApprovalState, Vote
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import JSON_TUPLE, approval_changes, approval_votes, approvals, from_json, to_json

_OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)
_MAX_DUE = 100

_APPROVAL = Columns(
    Approval, approvals, forms={"state": Form(ApprovalState, str), "policy_ids": JSON_TUPLE}, besides=("votes",)
)
_ALL = sa.select(*_APPROVAL.columns)
_OF_USER = sa.and_(approvals.c.tenant == sa.bindparam("tenant"), approvals.c.requester == sa.bindparam("requester"))
_OF_CALL = (
    _ALL.where(_OF_USER, approvals.c.tool == sa.bindparam("tool"))
    .order_by(approvals.c.decide_us.desc(), approvals.c.id.desc())
    .limit(1)
)
_BY_ID = _ALL.where(approvals.c.tenant == sa.bindparam("tenant"), approvals.c.id == sa.bindparam("id"))
_FIND = Query(_BY_ID)
_FIND_LOCKED = Query(_BY_ID.with_for_update(skip_locked=True))
_REJECTED = Query(
    _OF_CALL.where(
        sa.or_(approvals.c.args_hash == sa.bindparam("kept_hash"), approvals.c.args_hash == sa.bindparam("plain_hash")),
        approvals.c.state == str(ApprovalState.REJECTED),
        approvals.c.decide_us > sa.bindparam("since_us"),
        approvals.c.decide_us <= sa.bindparam("until_us"),
    )
)
_LAST_APPROVED = Query(
    _OF_CALL.where(
        sa.or_(approvals.c.state == str(ApprovalState.APPROVED), approvals.c.state == str(ApprovalState.REDEEMED)),
        approvals.c.decide_us <= sa.bindparam("before_us"),
        approvals.c.id != sa.bindparam("but_id"),
    )
)
_PENDING = sa.select(sa.func.count()).where(
    _OF_USER,
    approvals.c.state == str(ApprovalState.PENDING),
    approvals.c.expire_us > sa.bindparam("now_us"),
)
_COUNT_PENDING = Query(_PENDING)
_COUNT_PENDING_OF_THREAD = Query(_PENDING.where(approvals.c.thread_id == sa.bindparam("thread_id")))
_PENDING_EVERYWHERE = sa.text("""
    WITH RECURSIVE tenants (tenant) AS (
        SELECT min(tenant) FROM approvals
        UNION ALL
        SELECT (SELECT min(approvals.tenant) FROM approvals WHERE approvals.tenant > tenants.tenant)
        FROM tenants WHERE tenants.tenant IS NOT NULL
    )
    SELECT count(*), min(approvals.create_us)
    FROM tenants CROSS JOIN approvals
    WHERE approvals.tenant = tenants.tenant AND approvals.state = :pending AND approvals.expire_us > :now_us
""")
"""Hops from tenant to tenant along the index approvals_by_expiry, which begins with the tenant: it reads a row for each
tenant and each pending approval, never the approvals of the past."""
_ASKED = sa.select(sa.func.count(), sa.func.min(approvals.c.create_us)).where(
    _OF_USER, approvals.c.create_us > sa.bindparam("since_us"), approvals.c.create_us <= sa.bindparam("until_us")
)
_COUNT_ASKED = Query(_ASKED)
_COUNT_ASKED_OF_CLASS = Query(_ASKED.where(approvals.c.approval_class == sa.bindparam("approval_class")))
_VOTES = Query(
    sa.select(
        approval_votes.c.subject,
        approval_votes.c.vote_us,
        approval_votes.c.approver,
        approval_votes.c.level,
        approval_votes.c.groups,
        approval_votes.c.proof,
    )
    .where(approval_votes.c.tenant == sa.bindparam("tenant"), approval_votes.c.approval_id == sa.bindparam("id"))
    .order_by(approval_votes.c.vote_us, approval_votes.c.subject)
)
_CHANGED = ("state", "decide_us", "decided_by", "closed_reason", "attempts", "version")
_ONE = sa.and_(approvals.c.tenant == sa.bindparam("of_tenant"), approvals.c.id == sa.bindparam("of_id"))
_CHANGE = Update(sa.update(approvals).where(_ONE).values({name: sa.bindparam(name) for name in _CHANGED}))
_SAVE_ATTEMPTS = Update(sa.update(approvals).where(_ONE).values(attempts=sa.bindparam("attempts")))
_INSERT = RowInsert(approvals, *_APPROVAL.names)
_INSERT_VOTE = RowInsert(
    approval_votes, "tenant", "approval_id", "subject", "vote_us", "approver", "level", "groups", "proof"
)
_OF_VOTER = sa.and_(
    approval_votes.c.tenant == sa.bindparam("of_tenant"),
    approval_votes.c.approval_id == sa.bindparam("of_id"),
    approval_votes.c.subject == sa.bindparam("of_subject"),
)
_INSERT_CHANGE = RowInsert(
    approval_changes,
    "approval_id",
    "version",
    "tenant",
    "position",
    "state",
    "votes",
    "decide_us",
    "decided_by",
    "closed_reason",
    "change_us",
)


def insert_approval(connection: Connection, approval: Approval) -> Approval:
    """Insert an approval, which is its first change, and return it as stored."""
    first = replace(approval, version=1)
    _INSERT.run(connection, [_APPROVAL.values(first)])
    _note_change(connection, first, first.create_us)
    return first


def find_approval(connection: Connection, tenant: str, approval_id: str, *, lock: bool = False) -> Approval | None:
    """Return an approval of the tenant; with lock, other writers are excluded until the commit.

    Raise BusyError if another replica has it locked.
    """
    place = {"tenant": tenant, "id": approval_id}
    row = (_FIND_LOCKED if lock else _FIND).one(connection, place)
    if row is None:
        if lock and _FIND.one(connection, place) is not None:
            raise locks.BusyError
        return None
    return _APPROVAL.load(row, votes=tuple(_vote(one) for one in _VOTES.all(connection, place)))


def change_approval(connection: Connection, approval: Approval, now_us: int) -> Approval:
    """Update a changed approval, add the change for watches, and return it as stored."""
    changed = replace(approval, version=approval.version + 1)
    values = {name: getattr(changed, name) for name in _CHANGED}
    _CHANGE.run(connection, {**values, "state": str(changed.state), **_place(changed)})
    _note_change(connection, changed, now_us)
    return changed


def save_attempts(connection: Connection, approval: Approval) -> None:
    """Update the number of wrong codes, which is not a change for watches."""
    _SAVE_ATTEMPTS.run(connection, {"attempts": approval.attempts, **_place(approval)})


def add_vote(connection: Connection, approval: Approval, vote: Vote) -> None:
    """Insert a person's yes with the data of their credential; replaces an unproven row of theirs."""
    if any(one.subject == vote.subject for one in approval.votes):
        connection.execute(sa.delete(approval_votes).where(_OF_VOTER), _voter(approval, vote))
    groups = to_json(sorted(vote.groups))
    row = (approval.tenant, approval.id, vote.subject, vote.vote_us, vote.approver, vote.level, groups, vote.proof)
    _INSERT_VOTE.run(connection, [row])


def save_proof(connection: Connection, approval: Approval, vote: Vote) -> None:
    """Store the proof of a vote that had none."""
    proven = sa.update(approval_votes).where(_OF_VOTER).values(proof=vote.proof)
    connection.execute(proven, _voter(approval, vote))


def find_unproven(connection: Connection) -> list[tuple[str, str]]:
    """Return tenant and id of the open approvals with an unproven vote."""
    query = (
        sa.select(approvals.c.tenant, approvals.c.id)
        .distinct()
        .join(approval_votes, approval_votes.c.approval_id == approvals.c.id)
        .where(approval_votes.c.proof == "", approvals.c.state.in_(_OPEN))
        .order_by(approvals.c.tenant, approvals.c.id)
    )
    return [(row.tenant, row.id) for row in connection.execute(query)]


def count_pending(connection: Connection, tenant: str, requester: str, now_us: int, *, thread_id: str = "") -> int:
    """Return the number of a user's pending approvals, in one thread or in all.

    Never across users: thread ids are chosen freely, and another user's storm must not use up this user's limit.
    """
    query = _COUNT_PENDING_OF_THREAD if thread_id else _COUNT_PENDING
    of = {"tenant": tenant, "requester": requester, "now_us": now_us, "thread_id": thread_id}
    row = query.one(connection, of)
    return int(row[0]) if row else 0


def count_asked(
    connection: Connection, tenant: str, requester: str, *, since_us: int, until_us: int, approval_class: str = ""
) -> tuple[int, int]:
    """Return how many approvals a user requested in a period, of one class or of all, and the time of the first."""
    query = _COUNT_ASKED_OF_CLASS if approval_class else _COUNT_ASKED
    of: dict[str, str | int] = {"tenant": tenant, "requester": requester, "approval_class": approval_class}
    of |= {"since_us": since_us, "until_us": until_us}
    count, first_us = query.one(connection, of) or (0, 0)
    return count, first_us or 0


def find_rejected(
    connection: Connection,
    tenant: str,
    requester: str,
    *,
    tool: str,
    hashes: tuple[str, str],
    since_us: int,
    until_us: int,
) -> Approval | None:
    """Return a user's last approval for exactly this call that was rejected in a period.

    ``hashes`` are the keyed hash of the call, and the plain one, which earlier rows hold.
    """
    kept, plain = hashes
    of = {"tenant": tenant, "requester": requester, "tool": tool, "since_us": since_us, "until_us": until_us}
    of |= {"kept_hash": kept, "plain_hash": plain}
    return _without_votes(_REJECTED.one(connection, of))


def find_last_approved(
    connection: Connection, tenant: str, requester: str, *, tool: str, before_us: int, but_id: str
) -> Approval | None:
    """Return a user's last approval for a tool that was granted before that time, except but_id."""
    of = {"tenant": tenant, "requester": requester, "tool": tool, "before_us": before_us, "but_id": but_id}
    return _without_votes(_LAST_APPROVED.one(connection, of))


def lock_requester(connection: Connection, tenant: str, requester: str) -> None:
    """Exclude others from counting a user's approvals until the commit. Raise BusyError."""
    locks.take(connection, f"approvals of {requester} in {tenant}")


def find_due(connection: Connection, tenant: str, now_us: int) -> list[str]:
    """Return ids of open approvals past their time, at most 100."""
    query = (
        sa.select(approvals.c.id)
        .where(approvals.c.tenant == tenant, approvals.c.state.in_(_OPEN), approvals.c.expire_us <= now_us)
        .order_by(approvals.c.expire_us)
        .limit(_MAX_DUE)
    )
    return list(connection.execute(query).scalars())


def find_open(connection: Connection, tenant: str, requester: str) -> list[str]:
    """Return ids of a user's approvals that wait for an answer or for their call, the oldest first."""
    query = (
        sa.select(approvals.c.id)
        .where(approvals.c.tenant == tenant, approvals.c.requester == requester, approvals.c.state.in_(_OPEN))
        .order_by(approvals.c.create_us, approvals.c.id)
    )
    return list(connection.execute(query).scalars())


def list_approvals(
    connection: Connection,
    tenant: str,
    *,
    requester: str = "",
    state: ApprovalState | None = None,
    thread_id: str = "",
    before: tuple[int, str] | None = None,
    limit: int,
) -> list[Approval]:
    """Return approvals newest first, after the position (create_us, id)."""
    query = _ALL.where(approvals.c.tenant == tenant)
    if requester:
        query = query.where(approvals.c.requester == requester)
    if state is not None:
        query = query.where(approvals.c.state == state)
    if thread_id:
        query = query.where(approvals.c.thread_id == thread_id)
    if before is not None:
        at, last_id = before
        query = query.where(
            sa.or_(approvals.c.create_us < at, sa.and_(approvals.c.create_us == at, approvals.c.id < last_id))
        )
    rows = connection.execute(query.order_by(approvals.c.create_us.desc(), approvals.c.id.desc()).limit(limit)).all()
    return with_votes(connection, tenant, rows)


def with_votes(connection: Connection, tenant: str, rows: Sequence[Row[Any]]) -> list[Approval]:
    """Return the approvals of rows that contain at least an approval's columns, with their votes."""
    votes = _votes(connection, tenant, [row.id for row in rows])
    return [_APPROVAL.read(row, votes=votes.get(row.id, ())) for row in rows]


def _without_votes(row: Sequence[Any] | None) -> Approval | None:
    return None if row is None else _APPROVAL.load(row)


def _place(approval: Approval) -> dict[str, Any]:
    return {"of_tenant": approval.tenant, "of_id": approval.id}


def _voter(approval: Approval, vote: Vote) -> dict[str, Any]:
    return _place(approval) | {"of_subject": vote.subject}


def _note_change(connection: Connection, approval: Approval, now_us: int) -> None:
    row = (
        approval.id,
        approval.version,
        approval.tenant,
        0,  # its position in the order of changes is assigned when it is read
        str(approval.state),
        len(approval.votes),
        approval.decide_us,
        approval.decided_by,
        approval.closed_reason,
        now_us,
    )
    _INSERT_CHANGE.run(connection, [row])


def _votes(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, tuple[Vote, ...]]:
    if not ids:
        return {}
    table = approval_votes.c
    query = (
        sa.select(
            table.subject, table.vote_us, table.approver, table.level, table.groups, table.proof, table.approval_id
        )
        .where(table.tenant == tenant, table.approval_id.in_(ids))
        .order_by(table.vote_us, table.subject)
    )
    found: dict[str, tuple[Vote, ...]] = {}
    for *vote, approval_id in connection.execute(query):
        found[approval_id] = (*found.get(approval_id, ()), _vote(vote))
    return found


def _vote(row: Sequence[Any]) -> Vote:
    subject, vote_us, approver, level, groups, proof = row
    known = frozenset(from_json(groups)) if groups else frozenset()
    return Vote(subject, vote_us, approver=bool(approver), level=level, groups=known, proof=proof)


_AT_ONCE = 1_000
_TENANTS_AT_ONCE = 100

_C = approval_changes.c


@dataclass(frozen=True, slots=True)
class Wanted:
    """The filter of a watch; an empty field matches all."""

    tenant: str
    requester: str = ""
    state: ApprovalState | None = None
    thread_id: str = ""
    approval_id: str = ""

    def conditions(self) -> list[sa.ColumnElement[bool]]:
        """Return the conditions on an approval, except for its state."""
        given = (
            (approvals.c.requester, self.requester),
            (approvals.c.thread_id, self.thread_id),
            (approvals.c.id, self.approval_id),
        )
        return [approvals.c.tenant == self.tenant, *(column == value for column, value in given if value)]


@dataclass(frozen=True, slots=True)
class Changed:
    """One change: its position, and the approval after it."""

    position: int
    approval: Approval


def unplaced(connection: Connection, tenant: str) -> bool:
    """Return True if a tenant has changes without a position."""
    query = sa.select(_C.version).where(_C.tenant == tenant, _C.position == 0).limit(1)
    return connection.execute(query).first() is not None


def last_position(connection: Connection, tenant: str) -> int:
    """Return the last assigned position, 0 before the first."""
    return connection.execute(sa.select(sa.func.max(_C.position)).where(_C.tenant == tenant)).scalar_one() or 0


def first_position(connection: Connection, tenant: str) -> int:
    """Return the first position whose change is kept, 0 before the first."""
    query = sa.select(sa.func.min(_C.position)).where(_C.tenant == tenant, _C.position > 0)
    return connection.execute(query).scalar_one() or 0


def place_changes(connection: Connection, tenant: str) -> int:
    """Assign positions to at most 1,000 changes without one, and return how many; 0 if another replica does it.

    They are ordered by time, and those of one approval by version, even if the clock was set back between them.
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
    """Return at most 100 tenants with changes from before a time that are not their newest."""
    later = approval_changes.alias()
    newer = sa.exists().where(later.c.tenant == _C.tenant, later.c.position > _C.position)
    # as an expression: for the bare column SQLite scans the whole table by tenant instead of only old rows
    tenant = _C.tenant + ""
    query = sa.select(tenant).distinct().where(_C.change_us < before_us, sa.or_(_C.position == 0, newer))
    return list(connection.execute(query.limit(_TENANTS_AT_ONCE)).scalars())


def prune(connection: Connection, tenant: str, before_us: int) -> int:
    """Drop at most 1,000 of a tenant's changes up to the last one from before a time, and return how many.

    The newest stays, so that positions continue from it. Return 0 if another replica assigns or drops positions.
    """
    if not locks.try_take(connection, _lock_name(tenant)):
        return 0
    of_tenant = (_C.tenant == tenant, _C.position > 0, _C.position < last_position(connection, tenant))
    old = sa.select(sa.func.max(_C.position)).where(*of_tenant, _C.change_us < before_us)
    end = min(connection.execute(old).scalar_one() or 0, first_position(connection, tenant) + _AT_ONCE - 1)
    return connection.execute(sa.delete(approval_changes).where(*of_tenant, _C.position <= end)).rowcount


def changes_after(connection: Connection, wanted: Wanted, position: int, limit: int) -> list[Changed]:
    """Return changes after a position, in order."""
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
    """Return open approvals, oldest first, after (create_us, id), each with the position of its last change.

    The position is 0 if that change has none yet.
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
    # an approval older than the table of changes has no change, and none will come
    return [
        Changed(1 if row.then_position is None else row.then_position, one)
        for row, one in zip(rows, found, strict=True)
    ]


def _lock_name(tenant: str) -> str:
    return f"changes of {tenant}"


def pending_everywhere(connection: Connection, now_us: int) -> tuple[int, int]:
    """Return how many approvals of all tenants wait for a person, and when the oldest was created, 0 without one."""
    row = connection.execute(_PENDING_EVERYWHERE, {"pending": str(ApprovalState.PENDING), "now_us": now_us}).one()
    return row[0], row[1] or 0
