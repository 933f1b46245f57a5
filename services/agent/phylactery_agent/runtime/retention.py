"""How long events are kept: from each thread's beginning, those that are old enough go, and never one of a live run.

What is left of a thread has no gap: first_sequence says where it begins, and it only ever grows.
"""

from __future__ import annotations

import asyncio
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.clock import MICROSECONDS, Clock
from phylactery_chassis.database import Database
from phylactery_chassis.logs import get_logger
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.schema import ACTIVE, EVENTS, RUNS, THREADS

SWEEP_SECONDS: Final = 3_600.0
_THREADS_AT_ONCE: Final = 200
_AT_ONCE: Final = 1_000
"""Events removed in one transaction, so that no turn waits long behind it."""
_DAY_US: Final = 86_400 * MICROSECONDS

_log = get_logger("retention")


class Retention:
    """Removes events that are older than some days; several processes may do so at once."""

    def __init__(self, database: Database, clock: Clock, *, days: int) -> None:
        """Takes how many days events are kept, 0 for ever."""
        self._database, self._clock, self._days = database, clock, days

    async def run(self) -> None:
        """Sweeps again and again until cancelled; a round that fails is made up for by the next."""
        while self._days:
            try:
                removed = await self.sweep()
            except Exception as error:  # noqa: BLE001 - the next round may work; without one nothing would ever go
                _log.warning("old events wait", error=type(error).__name__)
            else:
                if removed:
                    _log.info("old events were removed", events=removed)
            await asyncio.sleep(SWEEP_SECONDS)

    async def sweep(self) -> int:
        """Removes what is too old and answers how many events that were. Raises Unavailable STORE_UNAVAILABLE."""
        if not self._days:
            return 0
        before_us, removed, after = self._clock.now_us() - self._days * _DAY_US, 0, ""
        while keys := await self._old_threads(before_us, after):
            for key in keys:
                removed += await self._sweep_thread(key, before_us)
            after = keys[-1]
        return removed

    async def _old_threads(self, before_us: int, after: str) -> list[str]:
        """Answers the next threads whose first event is too old."""
        first = sa.and_(EVENTS.c.thread_key == THREADS.c.thread_key, EVENTS.c.sequence == THREADS.c.first_sequence)
        query = (
            sa.select(THREADS.c.thread_key)
            .join(EVENTS, first)
            .where(THREADS.c.thread_key > after, EVENTS.c.created_us < before_us)
            .order_by(THREADS.c.thread_key)
            .limit(_THREADS_AT_ONCE)
        )
        return await self._database.read(lambda connection: list(connection.scalars(query)))

    async def _sweep_thread(self, key: str, before_us: int) -> int:
        removed = 0
        while some := await self._database.write(lambda connection: _remove_some(connection, key, before_us)):
            removed += some
        return removed


def _remove_some(connection: Connection, key: str, before_us: int) -> int:
    """Removes some of the thread's old events and answers how many; a thread that is gone has none."""
    thread = connection.execute(
        sa.select(THREADS.c.first_sequence, THREADS.c.last_sequence)
        .where(THREADS.c.thread_key == key)
        .with_for_update()
    ).one_or_none()
    if thread is None:
        return 0
    live = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key == key, RUNS.c.status.in_(ACTIVE))
    kept = connection.execute(
        sa.select(EVENTS.c.sequence)
        .where(EVENTS.c.thread_key == key, sa.or_(EVENTS.c.created_us >= before_us, EVENTS.c.run_id.in_(live)))
        .order_by(EVENTS.c.sequence)
        .limit(1)
    ).scalar()
    end = min(thread.last_sequence + 1 if kept is None else int(kept), thread.first_sequence + _AT_ONCE)
    removed = connection.execute(sa.delete(EVENTS).where(EVENTS.c.thread_key == key, EVENTS.c.sequence < end)).rowcount
    connection.execute(sa.update(THREADS).where(THREADS.c.thread_key == key).values(first_sequence=end))
    return removed
