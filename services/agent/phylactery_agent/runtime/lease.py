"""Leases: who may execute a run. Every write of a run proves here, in its own transaction, that it still may."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.clock import MICROSECONDS, Clock
from phylactery_chassis.database import Database
from sqlalchemy.engine import Connection

from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.model import Lease
from phylactery_agent.runtime.schema import RUNS

LEASE_SECONDS = 30
HEARTBEAT_SECONDS = LEASE_SECONDS / 3


def require_lease(connection: Connection, lease: Lease, now_us: int) -> None:
    """Raises LeaseLostError unless the lease holds; on PostgreSQL the row stays locked until the commit."""
    row = connection.execute(
        sa.select(RUNS.c.fence, RUNS.c.lease_owner, RUNS.c.lease_until_us, RUNS.c.status)
        .where(RUNS.c.run_id == lease.run_id)
        .with_for_update()
    ).one_or_none()
    if row is None or (row.fence, row.lease_owner, row.status) != (lease.fence, lease.holder, "running"):
        raise LeaseLostError(f"run {lease.run_id} is held by another process")
    if row.lease_until_us <= now_us:
        raise LeaseLostError(f"the lease of run {lease.run_id} ran out before it was renewed")


class RunCancelledError(Exception):
    """The person wants the run to end; nothing more of it is begun."""


def is_cancelled(connection: Connection, run_id: str) -> bool:
    """Says whether the person cancelled a run."""
    return bool(connection.execute(sa.select(RUNS.c.cancel_us).where(RUNS.c.run_id == run_id)).scalar())


def require_wanted(connection: Connection, run_id: str) -> None:
    """Raises RunCancelledError where the run was cancelled."""
    if is_cancelled(connection, run_id):
        raise RunCancelledError(f"run {run_id} was cancelled")


def lease_until(now_us: int) -> int:
    """Answers when a lease taken or renewed now runs out."""
    return now_us + LEASE_SECONDS * MICROSECONDS


class Leases:
    """Renews leases."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def renew(self, lease: Lease) -> None:
        """Prolongs the lease. Raises LeaseLostError: a lease that ran out is lost, even if nobody took it."""
        clock = self._clock

        def work(connection: Connection) -> None:
            now = clock.now_us()
            require_lease(connection, lease, now)
            connection.execute(
                sa.update(RUNS).where(RUNS.c.run_id == lease.run_id).values(lease_until_us=lease_until(now))
            )

        await self._database.write(work)
