"""Cluster-wide singleton jobs , each under a named lease.

Over SQLite a single process owns the folder, so every lease belongs to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Change, Update
from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.dispatch.leases import HEARTBEATS, LEASE_NOW, LEASE_SECONDS, lease_now, lease_until
from phylactery_agent.runtime.storage.schema import NAMED_LEASES

_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.02, 0.5

_new = insert(NAMED_LEASES).values(
    name=sa.bindparam("the_name"),
    holder=sa.bindparam("the_holder"),
    until_us=LEASE_NOW + sa.bindparam("lease_for_us", type_=sa.BigInteger),
)
_TAKE = Change(
    _new.on_conflict_do_update(
        index_elements=[NAMED_LEASES.c.name],
        set_={"holder": _new.excluded.holder, "until_us": _new.excluded.until_us},
        where=sa.or_(NAMED_LEASES.c.holder == _new.excluded.holder, NAMED_LEASES.c.until_us <= LEASE_NOW),
    ).returning(NAMED_LEASES.c.name)
)
_DROP = Update(
    sa.delete(NAMED_LEASES).where(
        NAMED_LEASES.c.name == sa.bindparam("the_name"), NAMED_LEASES.c.holder == sa.bindparam("the_holder")
    )
)

_log = get_logger("named_leases")


class LeaseTakenError(Exception):
    """Another process holds the lease at this moment."""


class NamedLeases:
    """The named leases of one process: acquisition, renewal and release."""

    def __init__(self, database: Database, clock: Clock, holder: str, *, seconds: float = LEASE_SECONDS) -> None:
        """Take the process's name and the lease time; a dead process's lease is free after that many seconds."""
        self._database, self._clock, self._holder, self._seconds = database, clock, holder, seconds
        self.alone = not database.dialect.is_server
        """Whether no other process can serve the database."""
        self._until: dict[str, float] = {}

    def has(self, name: str) -> bool:
        """Return True if this process certainly holds the lease, judged by local state alone."""
        return self.alone or self._until.get(name, 0.0) > time.monotonic()

    async def take(self, name: str) -> bool:
        """Acquire or renew a lease; return False if another process holds it. Raise Unavailable."""
        if self.alone:
            return True
        until = time.monotonic() + self._seconds  # before the query: the lease in the database ends later than this
        values = {
            "the_name": name,
            "the_holder": self._holder,
            "lease_for_us": round(self._seconds * MICROSECONDS),
            "lease_now_us": self._clock.now_us(),
        }
        if not await self._database.write(lambda connection: _TAKE.one(connection, values) is not None):
            self._until.pop(name, None)
            return False
        self._until[name] = until
        return True

    async def take_patiently(self, name: str) -> None:
        """Acquire a lease as soon as no other process holds it. Raise Unavailable."""
        pause = _FIRST_PAUSE_SECONDS
        while not await self.take(name):
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def drop(self, *names: str) -> None:
        """Release leases; if the database is unavailable they run out."""
        mine = [name for name in names if self._until.pop(name, None) is not None]
        if not mine:
            return

        def work(connection: Connection) -> None:
            for name in mine:
                _DROP.later(connection, {"the_name": name, "the_holder": self._holder})

        with contextlib.suppress(*STORE_FAILED):
            await self._database.write(work)

    @asynccontextmanager
    async def doing(self, name: str, *, patient: bool = True) -> AsyncIterator[None]:
        """Hold the lease for the block: wait for it, or raise LeaseTakenError if not patient."""
        if patient:
            await self.take_patiently(name)
        elif not await self.take(name):
            raise LeaseTakenError(name)
        try:
            yield
        finally:
            await self.drop(name)

    async def run(self) -> None:
        """Renew this process's leases and remove those that dead processes left, until cancelled."""
        while not self.alone:
            await asyncio.sleep(self._seconds / HEARTBEATS)
            try:
                await self._renew()
            except STORE_FAILED as error:
                _log.warning("named leases were not renewed", error=type(error).__name__)

    async def _renew(self) -> None:
        until, clock, seconds = time.monotonic() + self._seconds, self._clock, self._seconds
        wanted = [name for name, end in self._until.items() if end > time.monotonic()]

        def work(connection: Connection) -> set[str]:
            now = clock.now_us()
            kept = (
                sa.update(NAMED_LEASES)
                .where(NAMED_LEASES.c.name.in_(wanted), NAMED_LEASES.c.holder == self._holder)
                .values(until_us=lease_until(connection, now, seconds))
                .returning(NAMED_LEASES.c.name)
            )
            names = set(connection.scalars(kept))
            old = lease_now(connection, now) - round(HEARTBEATS * seconds * MICROSECONDS)
            connection.execute(sa.delete(NAMED_LEASES).where(NAMED_LEASES.c.until_us < old))
            return names

        kept = await self._database.write_beside(work)
        for name in wanted:
            if name not in kept:
                self._until.pop(name, None)
            elif name in self._until:  # it may have been dropped meanwhile
                self._until[name] = until
