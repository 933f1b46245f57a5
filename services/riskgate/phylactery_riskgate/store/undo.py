"""Store of what later decisions know of undos: tools whose undo failed, and effects the person was not told of.

Neither is locked for a decision: a failure or a line that is reported at the same moment counts for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query
from sqlalchemy.engine import Connection

from phylactery_riskgate.store.tables import redemptions, row_of, undo_failures


@dataclass(frozen=True, slots=True)
class UndoFailure:
    """A tool whose undo has failed in a tenant: for whom, since when, with which execution, and why.

    An empty ``subject`` is everybody in the tenant.
    """

    tenant: str
    tool: str
    subject: str
    fail_us: int
    execution_id: str
    error_code: str


_FAILED = Query(
    sa.select(undo_failures.c.tool).where(
        undo_failures.c.tenant == sa.bindparam("tenant"),
        undo_failures.c.tool == sa.bindparam("tool"),
        undo_failures.c.subject.in_([sa.literal_column("''"), sa.bindparam("subject")]),
    )
)
_OWED = Query(
    sa.select(redemptions.c.execution_id)
    .where(
        redemptions.c.tenant == sa.bindparam("tenant"),
        redemptions.c.subject == sa.bindparam("subject"),
        redemptions.c.low_stakes,
        redemptions.c.told_us == sa.literal_column("0"),
        redemptions.c.run_id != sa.bindparam("run_id"),
    )
    .limit(1)
)


def has_failed(connection: Connection, tenant: str, tool: str, subject: str) -> bool:
    """Return True if the undo of a tool has failed for a user of a tenant and nobody has cleared it."""
    return _FAILED.one(connection, {"tenant": tenant, "tool": tool, "subject": subject}) is not None


def is_owed(connection: Connection, tenant: str, subject: str, run_id: str) -> bool:
    """Return True if an effect of low stakes in another run of a user was not told to them."""
    return _OWED.one(connection, {"tenant": tenant, "subject": subject, "run_id": run_id}) is not None


def mark_told(connection: Connection, tenant: str, subject: str, execution_id: str, now_us: int) -> None:
    """Note that a user was told of an effect, or that it did not happen; the first time stays."""
    connection.execute(
        sa.update(redemptions)
        .where(
            redemptions.c.tenant == tenant,
            redemptions.c.subject == subject,
            redemptions.c.execution_id == execution_id,
            redemptions.c.told_us == 0,
        )
        .values(told_us=now_us)
    )


def insert_failure(connection: Connection, failure: UndoFailure) -> bool:
    """Insert a failure; return False if the tool has one already for these calls, which stays.

    One user's own failure concerns the whole tenant once there is another user's: it is the tool then.
    """
    known = {one.subject for one in failures_of(connection, failure.tenant) if one.tool == failure.tool}
    if known & {"", failure.subject}:
        return False
    if failure.subject and known:
        failure = replace(failure, subject="")
    connection.execute(sa.insert(undo_failures).values(**row_of(failure)))
    return True


def delete_failure(connection: Connection, tenant: str, tool: str) -> bool:
    """Delete a tool's failures; return True if there was one."""
    this = undo_failures.c.tenant == tenant, undo_failures.c.tool == tool
    return bool(connection.execute(sa.delete(undo_failures).where(*this)).rowcount)


def failures_of(connection: Connection, tenant: str) -> Sequence[UndoFailure]:
    """Return the failures in a tenant, by tool."""
    query = (
        sa.select(undo_failures)
        .where(undo_failures.c.tenant == tenant)
        .order_by(undo_failures.c.tool, undo_failures.c.subject)
    )
    return [UndoFailure(**row._asdict()) for row in connection.execute(query)]
