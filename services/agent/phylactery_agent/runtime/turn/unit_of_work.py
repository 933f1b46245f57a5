"""The durable and deferred writes of one turn.

A proposal, a started effect, its result, a model's reply and the turn's end are durable before anything depends on
them. A checkpoint, an event or a step of the projection has no external dependants: it is deferred, and written in the
transaction of the next durable write, before that write and under the same proof of the lease, or by a timer shortly
afterwards. So no row, service or client ever knows of a step that the checkpoints do not: a process that dies loses
only steps that were never visible, and repeats them under the same names.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_agent.ports import LeaseLostError
from phylactery_agent.runtime.dispatch.leases import RunCancelledError, require_lease
from phylactery_agent.runtime.storage.records import Lease

T = TypeVar("T")
Work = Callable[[Connection, int], T]
"""A write, given the connection and the time in microseconds. It may run twice, so it changes only the database."""

HOLD_SECONDS: Final = 0.05
"""Maximum time, in seconds, for which a write is deferred without a durable write; it bounds the delay of events."""


@dataclass(frozen=True, slots=True)
class _Held:
    work: Work[None]
    kept: Any


class TurnWrites:
    """The writes of one turn under its lease, serialised; each proves the lease in its own transaction."""

    def __init__(self, database: Database, clock: Clock, lease: Lease, *, written: Callable[[], None]) -> None:
        """Call ``written`` after each commit: something of the thread may have changed."""
        self._database, self._clock, self._lease, self._written = database, clock, lease, written
        self._held: dict[object, _Held] = {}
        self._one_at_a_time = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        self._cancelled = False

    @property
    def lease(self) -> Lease:
        """The lease under which everything is written."""
        return self._lease

    @property
    def cancelled(self) -> bool:
        """Whether the person cancelled the run, for use within a running write; it cannot change before the commit."""
        return self._cancelled

    def require_wanted(self) -> None:
        """Raise RunCancelledError, within a running write, if the person cancelled the run."""
        if self._cancelled:
            raise RunCancelledError(f"run {self._lease.run_id} was cancelled")

    def hold(self, work: Work[None], *, slot: object = None, kept: Any = None) -> None:
        """Defer a write. With a slot it replaces the write deferred there; see ``held``."""
        name = object() if slot is None else slot
        self._held.pop(name, None)
        self._held[name] = _Held(work, kept)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._flush_soon)

    def held(self, slot: object) -> Any:
        """Return the ``kept`` value of the write deferred in a slot, or None if there is none."""
        waiting = self._held.get(slot)
        return None if waiting is None else waiting.kept

    def drop(self, unwanted: Callable[[object], bool]) -> None:
        """Discard the deferred writes in slots for which ``unwanted`` returns True."""
        for name in [name for name in self._held if unwanted(name)]:
            del self._held[name]

    async def write(self, work: Work[T]) -> T:
        """Commit all deferred writes followed by this one in a single transaction.

        Return once it is durable. Raise LeaseLostError, Unavailable, and whatever the work raises; nothing was written
        then, and all deferred writes stay deferred. If they could not be written while others that depend on them were
        deferred, every later write raises the same error: the turn then resumes from what is stored.
        """
        async with self._one_at_a_time:
            if self._broken is not None:
                raise self._broken
            self._stop_timer()
            waiting, self._held = self._held, {}
            reach("agent.write.before")
            try:
                answer = await self._database.write(lambda connection: self._run(connection, waiting, work))
            except BaseException as error:
                self._keep(waiting, error)
                raise
        reach("agent.write")
        self._written()
        return answer

    async def flush(self) -> None:
        """Write everything deferred, if anything. Raise LeaseLostError and Unavailable."""
        if self._held:
            await self.write(lambda _connection, _now: None)

    async def close(self) -> None:
        """Stop the timer's writes. What is still deferred is discarded: it needed no write, or the lease is lost."""
        self._stop_timer()
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)  # an error has surfaced or is irrelevant

    def _keep(self, waiting: dict[object, _Held], error: BaseException) -> None:
        """Defer again what was not written. If dependent writes were deferred meanwhile, the turn cannot continue."""
        if self._held:
            self._broken = error
        self._held = waiting | self._held

    def _run(self, connection: Connection, waiting: dict[object, _Held], work: Work[T]) -> T:
        now = self._clock.now_us()
        self._cancelled = require_lease(connection, self._lease, now)
        for one in waiting.values():
            one.work(connection, now)
        return work(connection, now)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _flush_soon(self) -> None:
        self._timer = None
        self._flushing = asyncio.get_running_loop().create_task(self._flush_quietly())

    async def _flush_quietly(self) -> None:
        """Write everything deferred; an error surfaces at the next durable write."""
        with contextlib.suppress(LeaseLostError, DomainError):
            await self.flush()
