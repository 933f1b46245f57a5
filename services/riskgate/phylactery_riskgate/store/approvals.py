"""Approvals and their votes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.approvals import Approval, ApprovalState
from phylactery_riskgate.store.tables import approval_votes, approvals, from_json, row_of, to_json

_OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)
_MAX_DUE = 100


def insert_approval(connection: Connection, approval: Approval) -> None:
    """Adds an approval."""
    connection.execute(sa.insert(approvals).values(**_values(approval)))


def find_approval(connection: Connection, tenant: str, approval_id: str, *, lock: bool = False) -> Approval | None:
    """Answers an approval of the tenant; lock keeps other writers from it until the commit."""
    query = sa.select(approvals).where(approvals.c.tenant == tenant, approvals.c.id == approval_id)
    row = connection.execute(query.with_for_update() if lock else query).one_or_none()
    if row is None:
        return None
    votes = sa.select(approval_votes.c.subject).where(
        approval_votes.c.tenant == tenant, approval_votes.c.approval_id == approval_id
    )
    voters = connection.execute(votes.order_by(approval_votes.c.vote_us, approval_votes.c.subject)).scalars()
    return _approval(row, tuple(voters))


def save_approval(connection: Connection, approval: Approval) -> None:
    """Writes what can change of an approval: state, answer, attempts."""
    connection.execute(
        sa.update(approvals)
        .where(approvals.c.tenant == approval.tenant, approvals.c.id == approval.id)
        .values(
            state=str(approval.state),
            decide_us=approval.decide_us,
            decided_by=approval.decided_by,
            closed_reason=approval.closed_reason,
            attempts=approval.attempts,
        )
    )


def add_vote(connection: Connection, tenant: str, approval_id: str, subject: str, now_us: int) -> None:
    """Notes that a person said yes."""
    connection.execute(
        sa.insert(approval_votes).values(tenant=tenant, approval_id=approval_id, subject=subject, vote_us=now_us)
    )


def count_pending(connection: Connection, tenant: str, requester: str, now_us: int, *, thread_id: str = "") -> int:
    """Answers how many approvals of a user still wait, in one thread or in all.

    Never over users: a thread id is only a word, and somebody else's storm must not use up this user's room.
    """
    query = sa.select(sa.func.count()).where(
        approvals.c.tenant == tenant,
        approvals.c.requester == requester,
        approvals.c.state == ApprovalState.PENDING,
        approvals.c.expire_us > now_us,
    )
    if thread_id:
        query = query.where(approvals.c.thread_id == thread_id)
    return connection.execute(query).scalar_one()


def find_due(connection: Connection, tenant: str, now_us: int) -> list[str]:
    """Answers ids of open approvals whose time is over, at most 100."""
    query = (
        sa.select(approvals.c.id)
        .where(approvals.c.tenant == tenant, approvals.c.state.in_(_OPEN), approvals.c.expire_us <= now_us)
        .order_by(approvals.c.expire_us)
        .limit(_MAX_DUE)
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
    """Answers approvals newest first, after the position (create_us, id); voters are left out."""
    query = sa.select(approvals).where(approvals.c.tenant == tenant)
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
    rows = connection.execute(query.order_by(approvals.c.create_us.desc(), approvals.c.id.desc()).limit(limit))
    return [_approval(row, ()) for row in rows]


def _values(approval: Approval) -> dict[str, Any]:
    values = row_of(approval)
    del values["voters"]
    return values | {"state": str(approval.state), "policy_ids": to_json(approval.policy_ids)}


def _approval(row: Row[tuple[object, ...]], voters: tuple[str, ...]) -> Approval:
    values = row._asdict()
    values["state"] = ApprovalState(values["state"])
    values["policy_ids"] = tuple(from_json(values["policy_ids"]))
    return Approval(**values, voters=voters)
