"""Approvals and their votes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from phylactery_riskgate.approvals import Approval, ApprovalState, Vote
from phylactery_riskgate.store import locks
from phylactery_riskgate.store.tables import (
    approval_changes,
    approval_votes,
    approvals,
    from_json,
    row_of,
    to_json,
)

_OPEN = (ApprovalState.PENDING, ApprovalState.APPROVED)
_MAX_DUE = 100


def insert_approval(connection: Connection, approval: Approval) -> Approval:
    """Adds an approval, which is its first change, and answers it as kept."""
    first = replace(approval, version=1)
    connection.execute(sa.insert(approvals).values(**_values(first)))
    _note_change(connection, first, first.create_us)
    return first


def find_approval(connection: Connection, tenant: str, approval_id: str, *, lock: bool = False) -> Approval | None:
    """Answers an approval of the tenant; lock keeps other writers from it until the commit.

    Raises BusyError where another replica has it locked.
    """
    query = sa.select(approvals).where(approvals.c.tenant == tenant, approvals.c.id == approval_id)
    row = connection.execute(query.with_for_update(skip_locked=True) if lock else query).one_or_none()
    if row is None:
        if lock and connection.execute(query).one_or_none() is not None:
            raise locks.BusyError
        return None
    return _approval(row, _votes(connection, tenant, [approval_id]).get(approval_id, ()))


def change_approval(connection: Connection, approval: Approval, now_us: int) -> Approval:
    """Writes an approval that changed, for those who watch too, and answers it as kept."""
    changed = replace(approval, version=approval.version + 1)
    _save(
        connection,
        changed,
        state=str(changed.state),
        decide_us=changed.decide_us,
        decided_by=changed.decided_by,
        closed_reason=changed.closed_reason,
        attempts=changed.attempts,
        version=changed.version,
    )
    _note_change(connection, changed, now_us)
    return changed


def save_attempts(connection: Connection, approval: Approval) -> None:
    """Writes how many wrong codes there were: no change for those who watch."""
    _save(connection, approval, attempts=approval.attempts)


def add_vote(connection: Connection, approval: Approval, vote: Vote) -> None:
    """Notes that a person said yes, and what their credential said of them."""
    connection.execute(
        sa.insert(approval_votes).values(
            tenant=approval.tenant,
            approval_id=approval.id,
            subject=vote.subject,
            vote_us=vote.vote_us,
            approver=vote.approver,
            level=vote.level,
            groups=to_json(sorted(vote.groups)),
        )
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


def count_asked(
    connection: Connection, tenant: str, requester: str, *, since_us: int, approval_class: str = ""
) -> tuple[int, int]:
    """Answers how many approvals a user has asked for since then, of one class or of all, and when the first was."""
    query = sa.select(sa.func.count(), sa.func.min(approvals.c.create_us)).where(
        approvals.c.tenant == tenant, approvals.c.requester == requester, approvals.c.create_us > since_us
    )
    if approval_class:
        query = query.where(approvals.c.approval_class == approval_class)
    count, first_us = connection.execute(query).one()
    return count, first_us or 0


def find_rejected(
    connection: Connection, tenant: str, requester: str, *, tool: str, args_hash: str, since_us: int
) -> Approval | None:
    """Answers the last approval of a user for this very call that somebody rejected since then."""
    return _last_of_call(
        connection,
        tenant,
        requester,
        tool,
        approvals.c.args_hash == args_hash,
        approvals.c.state == ApprovalState.REJECTED,
        approvals.c.decide_us > since_us,
    )


def find_last_approved(
    connection: Connection, tenant: str, requester: str, *, tool: str, before_us: int, but_id: str
) -> Approval | None:
    """Answers the last approval of a user for a tool that was approved before that moment, but one."""
    return _last_of_call(
        connection,
        tenant,
        requester,
        tool,
        approvals.c.state.in_((ApprovalState.APPROVED, ApprovalState.REDEEMED)),
        approvals.c.decide_us <= before_us,
        approvals.c.id != but_id,
    )


def lock_requester(connection: Connection, tenant: str, requester: str) -> None:
    """Keeps everybody else from counting a user's approvals until the commit. Raises BusyError."""
    locks.take(connection, f"approvals of {requester} in {tenant}")


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
    """Answers approvals newest first, after the position (create_us, id)."""
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
    rows = connection.execute(query.order_by(approvals.c.create_us.desc(), approvals.c.id.desc()).limit(limit)).all()
    return with_votes(connection, tenant, rows)


def with_votes(connection: Connection, tenant: str, rows: Sequence[Row[Any]]) -> list[Approval]:
    """Answers the approvals of rows, each with who has said yes."""
    votes = _votes(connection, tenant, [row.id for row in rows])
    return [_approval(row, votes.get(row.id, ())) for row in rows]


def _last_of_call(
    connection: Connection, tenant: str, requester: str, tool: str, *conditions: sa.ColumnElement[bool]
) -> Approval | None:
    query = sa.select(approvals).where(
        approvals.c.tenant == tenant, approvals.c.requester == requester, approvals.c.tool == tool, *conditions
    )
    row = connection.execute(query.order_by(approvals.c.decide_us.desc(), approvals.c.id.desc()).limit(1)).one_or_none()
    return None if row is None else _approval(row, ())


def _save(connection: Connection, approval: Approval, **values: object) -> None:
    connection.execute(
        sa.update(approvals)
        .where(approvals.c.tenant == approval.tenant, approvals.c.id == approval.id)
        .values(**values)
    )


def _note_change(connection: Connection, approval: Approval, now_us: int) -> None:
    connection.execute(
        sa.insert(approval_changes).values(
            approval_id=approval.id,
            version=approval.version,
            tenant=approval.tenant,
            position=0,
            state=str(approval.state),
            votes=len(approval.votes),
            decide_us=approval.decide_us,
            decided_by=approval.decided_by,
            closed_reason=approval.closed_reason,
            change_us=now_us,
        )
    )


def _votes(connection: Connection, tenant: str, ids: Sequence[str]) -> dict[str, tuple[Vote, ...]]:
    if not ids:
        return {}
    query = (
        sa.select(approval_votes)
        .where(approval_votes.c.tenant == tenant, approval_votes.c.approval_id.in_(ids))
        .order_by(approval_votes.c.vote_us, approval_votes.c.subject)
    )
    found: dict[str, tuple[Vote, ...]] = {}
    for row in connection.execute(query):
        groups = frozenset(from_json(row.groups)) if row.groups else frozenset()
        vote = Vote(row.subject, row.vote_us, approver=row.approver, level=row.level, groups=groups)
        found[row.approval_id] = (*found.get(row.approval_id, ()), vote)
    return found


def _values(approval: Approval) -> dict[str, Any]:
    values = row_of(approval)
    del values["votes"]
    return values | {"state": str(approval.state), "policy_ids": to_json(approval.policy_ids)}


def _approval(row: Row[Any], votes: tuple[Vote, ...]) -> Approval:
    """Reads a row that holds an approval's columns, and perhaps more."""
    values = {column.name: getattr(row, column.name) for column in approvals.columns}
    values["state"] = ApprovalState(values["state"])
    values["policy_ids"] = tuple(from_json(values["policy_ids"]))
    return Approval(**values, votes=votes)
