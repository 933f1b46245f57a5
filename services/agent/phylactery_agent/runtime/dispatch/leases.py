"""Leases: the authority to execute a run, which every write of a run proves in its own transaction.

Over PostgreSQL several processes serve one database, and only the database's clock decides when a lease has expired:
theirs may be hours apart. Over SQLite there is one process, and its own clock decides.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.dialect import dialect_named, dialect_of
from phylactery_chassis.db.statements import Query, Update
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from sqlalchemy.engine import Connection
from sqlalchemy.ext.compiler import compiles

from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import NAMED_LEASES, RUNS

LEASE_SECONDS = 30.0
HEARTBEATS = 3
"""Number of heartbeats per lease."""


class _LeaseNow(sa.ColumnElement[int]):
    """The SQL element behind LEASE_NOW."""

    type = sa.BigInteger()
    inherit_cache = True


@compiles(_LeaseNow)
def _compiled(_element: _LeaseNow, compiler: Any, **options: Any) -> str:
    own = sa.bindparam("lease_now_us", type_=sa.BigInteger)
    return str(compiler.process(dialect_named(compiler.dialect.name).now_us(own), **options))


LEASE_NOW: sa.ColumnElement[int] = _LeaseNow()
"""The current time by which leases and pauses are judged, in microseconds, for statements compiled once.

That is the database's clock on PostgreSQL, and on SQLite the parameter lease_now_us, from the process's clock.
"""
_AUTHORITY = Query(
    sa.select(
        RUNS.c.fence,
        RUNS.c.lease_owner,
        RUNS.c.status,
        RUNS.c.lease_until_us,
        LEASE_NOW.label("now_us"),
        RUNS.c.cancel_us,
    )
    .where(RUNS.c.run_id == sa.bindparam("of_run"))
    .with_for_update()
)
_CANCELLED = Query(sa.select(RUNS.c.cancel_us).where(RUNS.c.run_id == sa.bindparam("of_run")))
_KEPT_BY_ANOTHER = sa.select(NAMED_LEASES.c.name).where(
    NAMED_LEASES.c.name == sa.bindparam("hold"), NAMED_LEASES.c.until_us > LEASE_NOW
)
_HELD = Query(_KEPT_BY_ANOTHER)
_SERVED_US = sa.bindparam("served_us", type_=sa.BigInteger)
_RENEW = Update(
    sa.update(RUNS)
    .where(
        RUNS.c.run_id == sa.bindparam("of_run"),
        RUNS.c.fence == sa.bindparam("under_fence"),
        RUNS.c.lease_owner == sa.bindparam("holder"),
        RUNS.c.status == RunStatus.RUNNING,
        RUNS.c.lease_until_us > LEASE_NOW,
        ~_KEPT_BY_ANOTHER.exists(),
    )
    .values(
        lease_until_us=LEASE_NOW + sa.bindparam("lease_for_us", type_=sa.BigInteger),
        active_us=sa.case((_SERVED_US > 0, _SERVED_US), else_=RUNS.c.active_us),
    )
)


def lease_now(connection: Connection, now_us: int) -> sa.ColumnElement[int]:
    """Return the current time by which leases and pauses are judged, in microseconds, as an SQL expression.

    That is the database's clock on PostgreSQL, and on SQLite now_us, from the process's clock.
    """
    return dialect_of(connection).now_us(sa.literal(now_us, sa.BigInteger))


def shared(connection: Connection) -> bool:
    """Return True if other processes may serve this database."""
    return dialect_of(connection).is_server


def hold_of(thread_key: str) -> str:
    """Return the name of the lease under which one process prevents all others from serving a thread."""
    return f"hold:{thread_key}"


def require_lease(connection: Connection, lease: Lease, now_us: int) -> bool:
    """Raise LeaseLostError unless the lease holds; on PostgreSQL the row stays locked until the commit.

    Return True if the person cancelled the run. This cannot change before the commit.
    """
    row = _AUTHORITY.one(connection, {"of_run": lease.run_id, "lease_now_us": now_us})
    if row is None or (row.fence, row.lease_owner, row.status) != (lease.fence, lease.holder, RunStatus.RUNNING):
        raise LeaseLostError(f"run {lease.run_id} is held by another process")
    if row.lease_until_us <= row.now_us:
        raise LeaseLostError(f"the lease of run {lease.run_id} ran out before it was renewed")
    return bool(row.cancel_us)


def require_unheld(connection: Connection, thread_key: str) -> None:
    """Raise LeaseLostError if another process prevents the thread from being served."""
    if not shared(connection):
        return
    if _HELD.one(connection, {"hold": hold_of(thread_key)}) is not None:
        raise LeaseLostError(f"thread {thread_key} is not served for now")


class RunCancelledError(Exception):
    """The person cancelled the run; nothing more of it is started."""


def require_wanted(connection: Connection, run_id: str) -> None:
    """Raise RunCancelledError if the run was cancelled."""
    row = _CANCELLED.one(connection, {"of_run": run_id})
    if row is not None and row.cancel_us:
        raise RunCancelledError(f"run {run_id} was cancelled")


class Leases:
    """Renewal of leases."""

    def __init__(self, database: Database, clock: Clock, *, seconds: float = LEASE_SECONDS) -> None:
        self._database, self._clock, self._seconds = database, clock, seconds

    @property
    def heartbeat_seconds(self) -> float:
        """Return the interval of lease renewals, in seconds."""
        return self._seconds / HEARTBEATS

    async def renew(self, lease: Lease, *, active_us: int = 0) -> None:
        """Extend the lease and, if active_us is not 0, record how long its run was served.

        Raise LeaseLostError: an expired lease is lost even if no other process took it. This is a single statement, and
        over PostgreSQL it does not queue behind other writes: on a slow connection the queue may take longer than a
        lease.
        """
        clock = self._clock
        under = {
            "of_run": lease.run_id,
            "under_fence": lease.fence,
            "holder": lease.holder,
            "hold": hold_of(lease.thread_key),
            "lease_for_us": round(self._seconds * MICROSECONDS),
            "served_us": active_us,
        }

        def work(connection: Connection) -> None:
            if not _RENEW.run(connection, {**under, "lease_now_us": clock.now_us()}):
                raise LeaseLostError(f"run {lease.run_id} is held by another process, or its lease ran out before this")
            require_unheld(connection, lease.thread_key)  # it may have been held while this waited for the row

        await self._database.write_beside(work)


def free_leases(database: Database, holders: Collection[str]) -> None:
    """Free all runs and named leases of holders known to be dead, so that other processes can resume them at once.

    Raise Unavailable STORE_UNAVAILABLE.
    """

    def work(connection: Connection) -> None:
        runs = sa.update(RUNS).where(RUNS.c.lease_owner.in_(holders), RUNS.c.status == RunStatus.RUNNING)
        connection.execute(runs.values(lease_owner="", lease_until_us=0))
        connection.execute(sa.delete(NAMED_LEASES).where(NAMED_LEASES.c.holder.in_(holders)))

    if holders:
        database.write_sync(work)


def lease_until(connection: Connection, now_us: int, seconds: float) -> sa.ColumnElement[int]:
    """Return when a lease acquired or renewed now expires, as an SQL expression."""
    return lease_now(connection, now_us) + round(seconds * MICROSECONDS)
