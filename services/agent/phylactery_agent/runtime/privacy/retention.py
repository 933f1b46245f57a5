"""Retention of events and of delivered outbox messages; nothing of a live run is ever removed.

The remaining events of a thread have no gap: first_sequence is where they begin, and it only ever grows.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.runs.status import ACTIVE
from phylactery_agent.runtime.storage.schema import (
    ESCALATION_ENTRIES,
    ESCALATIONS,
    EVENTS,
    FORM_SESSIONS,
    FORM_SUBMISSIONS,
    OUTBOX,
    RUNS,
    THREADS,
)

SWEEP_SECONDS: Final = 3_600.0
_THREADS_AT_ONCE: Final = 200
_AT_ONCE: Final = 1_000
"""Events removed in one transaction, so that no turn waits long for it."""
_DAY_US: Final = 86_400 * MICROSECONDS
_DELIVERED_US: Final = _DAY_US
"""Retention of a delivered message, in microseconds: it shows when it was delivered, to help explain a missing one."""

_log = get_logger("retention")


class Retention:
    """Removal of old events, ended escalations and delivered messages; several processes may run it at once."""

    def __init__(self, database: Database, clock: Clock, *, days: int) -> None:
        """Take the number of days that events are kept; 0 keeps them forever."""
        self._database, self._clock, self._days = database, clock, days

    async def run(self) -> None:
        """Sweep repeatedly until cancelled; the next round makes up for one that fails."""
        while True:
            try:
                messages = await self.prune()
                events = await self.sweep()
                await self.forget_forms()
            except Exception as error:  # noqa: BLE001 - the next round may work; else nothing would be removed
                _log.warning("retention failed; will retry", error=type(error).__name__)
            else:
                if events or messages:
                    _log.info("old events and outbox messages removed", events=events, messages=messages)
            await asyncio.sleep(SWEEP_SECONDS)

    async def prune(self) -> int:
        """Remove messages delivered a day ago or earlier, and return how many.

        Messages that wait stay, as do refused ones, which are kept for a person, and all of a live run, whose nodes may
        run again. Nothing else is sent a second time: a message is queued together with a state change that happens
        only once. Messages are in queueing order, so the first page with new ones is the last. Raise Unavailable.
        """
        before_us, pruned, last = self._clock.now_us() - _DELIVERED_US, 0, 0
        while page := await self._page(last):
            first, last = page[0][0], page[-1][0]
            pruned += await self._database.write(partial(_prune, first=first, last=last, before_us=before_us))
            if min(created_us for _, created_us in page) >= before_us:
                break
        return pruned

    async def _page(self, after: int) -> list[tuple[int, int]]:
        """Return the next messages as pairs of id and queueing time."""
        query = sa.select(OUTBOX.c.outbox_id, OUTBOX.c.created_us).where(OUTBOX.c.outbox_id > after)
        page = query.order_by(OUTBOX.c.outbox_id).limit(_AT_ONCE)
        return await self._database.read(lambda connection: [(key, us) for key, us in connection.execute(page)])

    async def sweep(self) -> int:
        """Remove events that are too old and return how many. Raise Unavailable STORE_UNAVAILABLE."""
        if not self._days:
            return 0
        before_us, removed, after = self._clock.now_us() - self._days * _DAY_US, 0, ""
        while keys := await self._old_threads(before_us, after):
            for key in keys:
                removed += await self._sweep_thread(key, before_us)
            after = keys[-1]
        return removed + await self._database.write(lambda connection: _remove_escalations(connection, before_us))

    async def forget_forms(self) -> int:
        """Remove form sessions that nobody went on with, and submissions, after as long as events are kept.

        Return how many. One whose submission still waits for an approval stays. Raise Unavailable STORE_UNAVAILABLE.
        """
        if not self._days:
            return 0
        before_us = self._clock.now_us() - self._days * _DAY_US
        live = sa.select(RUNS.c.run_id).where(RUNS.c.run_id == FORM_SESSIONS.c.run_id, RUNS.c.status.in_(ACTIVE))
        old = sa.delete(FORM_SESSIONS).where(FORM_SESSIONS.c.updated_us < before_us, sa.not_(sa.exists(live)))
        submitted = sa.delete(FORM_SUBMISSIONS).where(FORM_SUBMISSIONS.c.created_us < before_us)
        return await self._database.write(
            lambda connection: connection.execute(old).rowcount + connection.execute(submitted).rowcount
        )

    async def _old_threads(self, before_us: int, after: str) -> list[str]:
        """Return the next threads whose first event is too old."""
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


def _prune(connection: Connection, *, first: int, last: int, before_us: int) -> int:
    """Remove the removable messages between two ids; rows locked by another process are left to it."""
    live = sa.select(RUNS.c.run_id).where(RUNS.c.run_id == OUTBOX.c.run_id, RUNS.c.status.in_(ACTIVE))
    over = sa.select(OUTBOX.c.outbox_id).where(
        OUTBOX.c.outbox_id.between(first, last),
        OUTBOX.c.state == "delivered",
        OUTBOX.c.settled_us < before_us,
        sa.not_(sa.exists(live)),
    )
    keys = list(connection.scalars(over.with_for_update(skip_locked=True)))
    return connection.execute(sa.delete(OUTBOX).where(OUTBOX.c.outbox_id.in_(keys))).rowcount if keys else 0


def _remove_escalations(connection: Connection, before_us: int) -> int:
    """Remove some escalations that ended before a time, with their entries, and return how many rows went."""
    ended = sa.select(ESCALATIONS.c.escalation_id).where(ESCALATIONS.c.ended_us > 0, ESCALATIONS.c.ended_us < before_us)
    found = list(connection.scalars(ended.limit(_THREADS_AT_ONCE)))
    removed = 0
    for table in (ESCALATION_ENTRIES, ESCALATIONS) if found else ():
        removed += connection.execute(sa.delete(table).where(table.c.escalation_id.in_(found))).rowcount
    return removed


def _remove_some(connection: Connection, key: str, before_us: int) -> int:
    """Remove some of the thread's old events and return how many; 0 if the thread no longer exists."""
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
