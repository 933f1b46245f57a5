"""Leases: who may execute a run. Every write of a run proves here, in its own transaction, that it still may.

Over PostgreSQL several processes serve one database, and only the database's clock says when a lease is over: theirs
may be hours apart. Over SQLite one process does, and its own clock says so.
"""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from phylactery_chassis.clock import MICROSECONDS, Clock
from phylactery_chassis.database import Database
from phylactery_chassis.statements import Query
from sqlalchemy.engine import Connection

from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.model import Lease
from phylactery_agent.runtime.schema import DUTIES, RUNS

LEASE_SECONDS = 30.0
HEARTBEATS = 3
"""How many heartbeats there are in a lease."""

_DATABASE_US = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * MICROSECONDS, sa.BigInteger)
_AUTHORITY = (
    sa.select(RUNS.c.fence, RUNS.c.lease_owner, RUNS.c.status, RUNS.c.lease_until_us)
    .where(RUNS.c.run_id == sa.bindparam("of_run"))
    .with_for_update()
)
_HELD = Query(_AUTHORITY)
_HELD_AND_NOW = Query(_AUTHORITY.add_columns(_DATABASE_US.label("now_us")))
_CANCELLED = Query(sa.select(RUNS.c.cancel_us).where(RUNS.c.run_id == sa.bindparam("of_run")))


def lease_now(connection: Connection, now_us: int) -> sa.ColumnElement[int]:
    """Answers the time leases and pauses are judged by, in microseconds, for a statement.

    That is the database's own on PostgreSQL, and on SQLite now_us, the process'.
    """
    return _DATABASE_US if shared(connection) else sa.literal(now_us, sa.BigInteger)


def shared(connection: Connection) -> bool:
    """Says whether other processes may serve this database."""
    return connection.dialect.name == "postgresql"


def hold_of(thread_key: str) -> str:
    """Answers the name of the duty under which one process keeps all others from serving a thread."""
    return f"hold:{thread_key}"


def require_lease(connection: Connection, lease: Lease, now_us: int) -> None:
    """Raises LeaseLostError unless the lease holds; on PostgreSQL the row stays locked until the commit."""
    query = _HELD_AND_NOW if shared(connection) else _HELD
    row = query.one(connection, {"of_run": lease.run_id})
    if row is None or tuple(row[:3]) != (lease.fence, lease.holder, "running"):
        raise LeaseLostError(f"run {lease.run_id} is held by another process")
    if row[3] <= (row[4] if query is _HELD_AND_NOW else now_us):
        raise LeaseLostError(f"the lease of run {lease.run_id} ran out before it was renewed")


def require_unheld(connection: Connection, thread_key: str) -> None:
    """Raises LeaseLostError where another process keeps everybody from serving the thread."""
    if not shared(connection):
        return
    if connection.execute(sa.select(_is_held(thread_key))).scalar_one():
        raise LeaseLostError(f"thread {thread_key} is not served for now")


def _is_held(thread_key: str) -> sa.ColumnElement[bool]:
    """Answers, for PostgreSQL, whether another process keeps everybody from serving the thread."""
    return sa.exists().where(DUTIES.c.name == hold_of(thread_key), DUTIES.c.until_us > _DATABASE_US)


class RunCancelledError(Exception):
    """The person wants the run to end; nothing more of it is begun."""


def is_cancelled(connection: Connection, run_id: str) -> bool:
    """Says whether the person cancelled a run."""
    row = _CANCELLED.one(connection, {"of_run": run_id})
    return row is not None and bool(row[0])


def require_wanted(connection: Connection, run_id: str) -> None:
    """Raises RunCancelledError where the run was cancelled."""
    if is_cancelled(connection, run_id):
        raise RunCancelledError(f"run {run_id} was cancelled")


class Leases:
    """Takes, renews and gives back leases."""

    def __init__(self, database: Database, clock: Clock, *, seconds: float = LEASE_SECONDS) -> None:
        self._database, self._clock, self._seconds = database, clock, seconds

    @property
    def heartbeat_seconds(self) -> float:
        """Answers how often a lease is renewed."""
        return self._seconds / HEARTBEATS

    async def renew(self, lease: Lease, *, active_us: int = 0) -> None:
        """Prolongs the lease, and notes how long its run was served, where that is told.

        Raises LeaseLostError: a lease that ran out is lost, even if nobody took it. It is one statement, and over
        PostgreSQL it waits for no other write: where the way is long, a queue may take longer than a lease.
        """
        clock, held = self._clock, _is_held(lease.thread_key)
        values = {"active_us": active_us} if active_us else {}

        def work(connection: Connection) -> None:
            now = clock.now_us()
            renewed = (
                sa.update(RUNS)
                .where(RUNS.c.run_id == lease.run_id, RUNS.c.fence == lease.fence, RUNS.c.lease_owner == lease.holder)
                .where(RUNS.c.status == "running", RUNS.c.lease_until_us > lease_now(connection, now))
                .values(lease_until_us=lease_until(connection, now, self._seconds), **values)
            )
            if not connection.execute(renewed.where(~held) if shared(connection) else renewed).rowcount:
                raise LeaseLostError(f"run {lease.run_id} is held by another process, or its lease ran out before this")
            require_unheld(connection, lease.thread_key)  # held, maybe, while this waited for the row

        await self._database.write_beside(work)


def free_leases(database: Database, holders: Collection[str]) -> None:
    """Frees every run and duty of holders that are known to be dead, so that others go on with them at once.

    Raises Unavailable STORE_UNAVAILABLE.
    """

    def work(connection: Connection) -> None:
        runs = sa.update(RUNS).where(RUNS.c.lease_owner.in_(holders), RUNS.c.status == "running")
        connection.execute(runs.values(lease_owner="", lease_until_us=0))
        connection.execute(sa.delete(DUTIES).where(DUTIES.c.holder.in_(holders)))

    if holders:
        database.write_sync(work)


def lease_until(connection: Connection, now_us: int, seconds: float) -> sa.ColumnElement[int]:
    """Answers when a lease taken or renewed now runs out, for a statement."""
    return lease_now(connection, now_us) + round(seconds * MICROSECONDS)
