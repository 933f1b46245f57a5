"""Firing: what is due is told, once, whoever looks and however often the process dies.

One transaction moves the schedule on, appends the message to the thread's log and queues it for the transcript. It is
claimed by the time it was due, so of several replicas one moves it and the others find it moved. No run is touched:
a suspended one stays as it is. What was missed while nobody looked is told in one late message.

What is due next is counted from what was due, never from the clock: one that is set back tells nothing twice, and one
that was an hour ahead told early, once. Over PostgreSQL it is the database's clock, whatever the replicas think.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import STORE_FAILED
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock, pause
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection, Row

from phylactery_agent.ports import Language
from phylactery_agent.runtime.dispatch.leases import lease_now
from phylactery_agent.runtime.dispatch.notifier import ThreadNews
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.outbox import queue_transcript
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import SCHEDULES, THREADS, to_text
from phylactery_agent.timeparse.recurrence import Next, RuleError, next_after, to_local, zone

LATE_US: Final = 60 * MICROSECONDS
"""A message that comes later than this says when it was due."""
KEPT_US: Final = 30 * 24 * 3_600 * MICROSECONDS
"""How long a reminder that is over is kept, for an effect that comes back to it."""
_FORGET_US: Final = 3_600 * MICROSECONDS
_PAGE: Final = 100
_SHOWN: Final = "%Y-%m-%d %H:%M"

_TEXTS: Final[dict[str, dict[Language, str]]] = {
    "on_time": {"es": "Recordatorio: {text}", "en": "Reminder: {text}"},
    "late": {
        "es": "Recordatorio (era para {due}, hora de {zone}; no pude avisarte antes): {text}",
        "en": "Reminder (it was for {due}, {zone} time; I could not tell you before): {text}",
    },
    "missed": {
        "es": "Recordatorio (tocaba {passed} veces desde {due}, hora de {zone}; no pude avisarte antes): {text}",
        "en": "Reminder (due {passed} times since {due}, {zone} time; I could not tell you before): {text}",
    },
}

_log = get_logger("schedules")

NowOf = Callable[[Connection, int], int]


def database_now(connection: Connection, now_us: int) -> int:
    """Return the time leases are judged by: the database's own where others may serve it, else the process'."""
    return int(connection.execute(sa.select(lease_now(connection, now_us))).scalar_one())


class Firing:
    """Tells what is due, in the background."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        news: ThreadNews,
        delivery: Delivery,
        *,
        poll_seconds: float,
        now_of: NowOf = database_now,
    ) -> None:
        """poll_seconds is the longest a replica does not look: another one may have been given something new.

        now_of answers the time something is due by, from a connection and the process' own.
        """
        self._database, self._clock, self._news, self._delivery = database, clock, news, delivery
        self._poll_seconds, self._now_of = poll_seconds, now_of
        self._asked = asyncio.Event()
        self._forgot_us = 0

    def wake(self) -> None:
        """Say that something new may be due."""
        self._asked.set()

    async def run(self) -> None:
        """Fire what is due, again and again, until cancelled."""
        while True:
            self._asked.clear()
            try:
                await self.fire_due()
                seconds = await self._until_next()
            except STORE_FAILED:
                _log.warning("reminders wait for the store")
                seconds = self._poll_seconds
            except Exception as error:  # noqa: BLE001 - a fault of ours in one reminder must not end them all
                _log.error("reminders were not told", error=type(error).__name__)
                seconds = self._poll_seconds
            await pause(self._asked, seconds)

    async def fire_due(self) -> int:
        """Tell everything that is due now, and forget what is long over; return how many messages that were."""
        fired = 0
        while due := await self._database.read(lambda connection: _due(connection, self._now(connection))):
            moved = 0
            for schedule_id in due:
                moved += await self._fire(schedule_id)
            fired += moved
            if not moved:  # others did it, or a row cannot be moved: neither is gained by asking at once
                break
        await self._forget_now_and_then()
        return fired

    async def _forget_now_and_then(self) -> None:
        now = self._clock.now_us()  # a month, more or less
        if abs(now - self._forgot_us) >= _FORGET_US:
            await self._database.write(lambda connection: _forget(connection, now))
            self._forgot_us = now

    async def _fire(self, schedule_id: str) -> bool:
        try:
            thread_key = await self._database.write(
                lambda connection: _tell(connection, schedule_id, self._now(connection))
            )
        except RuleError as error:
            _log.error("a reminder cannot be told", schedule_id=schedule_id, problem=str(error))
            return False
        if thread_key is None:
            return False
        reach("agent.schedule.fired")
        self._news.tell(thread_key)
        self._delivery.wake()
        return True

    async def _until_next(self) -> float:
        """Return how long to wait: what was due and could not be told is not gained by asking at once."""
        query = sa.select(sa.func.min(SCHEDULES.c.due_us)).where(SCHEDULES.c.state == "active")

        def work(connection: Connection) -> float:
            due = connection.execute(query).scalar()
            left = None if due is None else (due - self._now(connection)) / MICROSECONDS
            return self._poll_seconds if left is None or left <= 0 else min(left, self._poll_seconds)

        return await self._database.read(work)

    def _now(self, connection: Connection) -> int:
        return self._now_of(connection, self._clock.now_us())


def _due(connection: Connection, now: int) -> Sequence[str]:
    query = sa.select(SCHEDULES.c.schedule_id).where(SCHEDULES.c.state == "active", SCHEDULES.c.due_us <= now)
    return list(connection.execute(query.order_by(SCHEDULES.c.due_us).limit(_PAGE)).scalars())


def _forget(connection: Connection, now: int) -> None:
    connection.execute(
        sa.delete(SCHEDULES).where(SCHEDULES.c.state != "active", SCHEDULES.c.updated_us < now - KEPT_US)
    )


def _tell(connection: Connection, schedule_id: str, now: int) -> str | None:
    """Move a schedule on and tell it, in this transaction; return its thread, None where it is not due any more."""
    row = connection.execute(sa.select(SCHEDULES).where(SCHEDULES.c.schedule_id == schedule_id)).one_or_none()
    if row is None or row.state != "active" or row.due_us > now:
        return None
    then = next_after(row.repeat, row.start_us, row.time_zone, due_us=row.due_us, after_us=now)
    moved = {"state": "done"} if then.due_us is None else {"due_us": then.due_us}
    claimed = connection.execute(
        sa.update(SCHEDULES)
        .where(SCHEDULES.c.schedule_id == schedule_id, SCHEDULES.c.state == "active", SCHEDULES.c.due_us == row.due_us)
        .values(updated_us=now, **moved)
    )
    if claimed.rowcount != 1:
        return None
    thread = sa.select(THREADS.c.thread_key).where(THREADS.c.thread_key == row.thread_key)
    if connection.execute(thread).first() is None:
        connection.execute(sa.delete(SCHEDULES).where(SCHEDULES.c.schedule_id == schedule_id))
        return None
    reach("agent.schedule.claimed")
    message_id = f"{schedule_id}.{row.due_us}"
    text = _text(row, then, now)
    # no run and no lease: the message is its own fact of the thread, whatever is being served there
    firing = Lease("", message_id, row.thread_id, Owner(row.tenant, row.user_id), "", 0)
    append_event(connection, firing, "message", {"message_id": message_id, "text": text}, once="reminder", now_us=now)
    told = {"id": message_id, "role": "assistant", "text": text, "create_us": now}
    queue_transcript(connection, firing, [told], now_us=now)
    return firing.thread_key


def _text(row: Row[Any], then: Next, now: int) -> str:
    language: Language = "en" if row.language == "en" else "es"
    kind = "missed" if then.passed > 1 else "late" if now - row.due_us > LATE_US else "on_time"
    due: datetime = to_local(row.due_us, zone(row.time_zone))
    return _TEXTS[kind][language].format(
        text=to_text(row.text), due=due.strftime(_SHOWN), zone=row.time_zone, passed=then.passed
    )
