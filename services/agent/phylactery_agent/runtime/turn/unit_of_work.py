"""What one turn writes: some of it must last before the next step is taken, the rest goes along with that.

A proposal, a started effect, its result, a model's reply and the turn's end are durable before anything rests on them.
A checkpoint, an event or a step of the projection rests on nothing outside: it is held, and written in the transaction
of the next write that must last, before it and under the same proof of the lease, or a moment later by itself. So no
row, no service and no client ever knows of a step that the checkpoints do not: a process that dies loses only steps
nobody heard of, and takes them again under the same names.
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
"""Writes, given the time in microseconds. It may run twice, so it changes nothing but the database."""

HOLD_SECONDS: Final = 0.05
"""How long something is held at most while nothing that must last is written: a client sees events no later."""


@dataclass(frozen=True, slots=True)
class _Held:
    work: Work[None]
    kept: Any


class TurnWrites:
    """The writes of one turn under its lease, one after the other; every one proves the lease in its transaction."""

    def __init__(self, database: Database, clock: Clock, lease: Lease, *, written: Callable[[], None]) -> None:
        """``written`` is called after each commit: something of the thread may be new."""
        self._database, self._clock, self._lease, self._written = database, clock, lease, written
        self._held: dict[object, _Held] = {}
        self._one_at_a_time = asyncio.Lock()
        self._timer: asyncio.TimerHandle | None = None
        self._flushing: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        self._cancelled = False

    @property
    def lease(self) -> Lease:
        """The authority under which all of it is written."""
        return self._lease

    @property
    def cancelled(self) -> bool:
        """Say, to a work that runs, whether the person cancelled the run; nobody can before its commit."""
        return self._cancelled

    def require_wanted(self) -> None:
        """Raise RunCancelledError, in a work that runs, where the person cancelled the run."""
        if self._cancelled:
            raise RunCancelledError(f"run {self._lease.run_id} was cancelled")

    def hold(self, work: Work[None], *, slot: object = None, kept: Any = None) -> None:
        """Take a write that can wait. With a slot it takes the place of what was held there; see ``held``."""
        name = object() if slot is None else slot
        self._held.pop(name, None)
        self._held[name] = _Held(work, kept)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(HOLD_SECONDS, self._flush_soon)

    def held(self, slot: object) -> Any:
        """Return what was given as ``kept`` with the write that waits there; None where none does."""
        waiting = self._held.get(slot)
        return None if waiting is None else waiting.kept

    def drop(self, unwanted: Callable[[object], bool]) -> None:
        """Forget what waits in slots of which that is true."""
        for name in [name for name in self._held if unwanted(name)]:
            del self._held[name]

    async def write(self, work: Work[T]) -> T:
        """Write what is held and then this, in one transaction, and return once it is durable.

        Raise LeaseLostError, Unavailable, and what the work raises; then nothing was written and all is held still.
        After something held failed by itself, every write raises why: the turn is taken up again from what is stored.
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
        """Write what is held, if there is something. Raise LeaseLostError and Unavailable."""
        if self._held:
            await self.write(lambda _connection, _now: None)

    async def close(self) -> None:
        """Write nothing more by itself; what is held was not worth a write, or its lease is lost."""
        self._stop_timer()
        if self._flushing is not None:
            self._flushing.cancel()
            await asyncio.gather(self._flushing, return_exceptions=True)  # a fault of it has shown, or shows no more

    def _keep(self, waiting: dict[object, _Held], error: BaseException) -> None:
        """Hold what was not written. Where more was held meanwhile, which rests on it, the turn cannot go on."""
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
        """Write what is held; what is wrong shows at the next write that must last."""
        with contextlib.suppress(LeaseLostError, DomainError):
            await self.flush()
