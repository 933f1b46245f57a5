"""The reminder scheduler: delivers each due reminder exactly once, across replicas and crashes.

One transaction advances the schedule, appends the message to the thread's log and queues it for the transcript. The
update is conditional on the previous due time, so of several replicas only one succeeds. No run is touched: a suspended
one stays suspended. Occurrences missed while no process was running are reported in one late message.

The next due time is computed from the last one, never from the clock: a clock that is set back causes no duplicates,
and one that was an hour ahead delivers early, once. Over PostgreSQL the database's clock decides, whatever the
replicas' clocks say.
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

from phylactery_agent.i18n.messages import message
from phylactery_agent.ports import Language
from phylactery_agent.runtime.dispatch.leases import lease_now
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.outbox import queue_transcript
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import SCHEDULES, THREADS, to_text
from phylactery_agent.timeparse.recurrence import Next, RuleError, next_after, to_local, zone

LATE_US: Final = 60 * MICROSECONDS
"""Delay beyond which a message states when it was due, in microseconds."""
KEPT_US: Final = 30 * 24 * 3_600 * MICROSECONDS
"""Retention of a finished reminder, in microseconds, for an effect that is repeated under the same key."""
_FORGET_US: Final = 3_600 * MICROSECONDS
_PAGE: Final = 100
_SHOWN: Final = "%Y-%m-%d %H:%M"

_log = get_logger("schedules")

NowOf = Callable[[Connection, int], int]


def database_now(connection: Connection, now_us: int) -> int:
    """Return the time by which leases are judged: the database's if other processes may serve it, else our own."""
    return int(connection.execute(sa.select(lease_now(connection, now_us))).scalar_one())


class ReminderScheduler:
    """The background delivery of due reminders."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        news: ThreadNotifier,
        delivery: Delivery,
        *,
        poll_seconds: float,
        now_of: NowOf = database_now,
    ) -> None:
        """Take the stores; poll_seconds bounds the sleep, since another replica may have accepted a new reminder.

        now_of returns the time by which reminders are due, given a connection and the process's own time.
        """
        self._database, self._clock, self._news, self._delivery = database, clock, news, delivery
        self._poll_seconds, self._now_of = poll_seconds, now_of
        self._asked = asyncio.Event()
        self._forgot_us = 0

    def wake(self) -> None:
        """Wake the scheduler because a new reminder may be due."""
        self._asked.set()

    async def run(self) -> None:
        """Deliver due reminders until cancelled."""
        while True:
            self._asked.clear()
            try:
                await self.fire_due()
                seconds = await self._until_next()
            except STORE_FAILED:
                _log.warning("reminders wait: database unavailable")
                seconds = self._poll_seconds
            except Exception as error:  # noqa: BLE001 - a bug in one reminder must not end them all
                _log.error("reminder delivery failed", error=type(error).__name__)
                seconds = self._poll_seconds
            await pause(self._asked, seconds)

    async def fire_due(self) -> int:
        """Deliver every due reminder and delete old finished ones; return the number of messages delivered."""
        fired = 0
        while due := await self._database.read(lambda connection: _due(connection, self._now(connection))):
            moved = 0
            for schedule_id in due:
                moved += await self._fire(schedule_id)
            fired += moved
            if not moved:  # other replicas delivered them, or a row cannot be advanced: retrying at once helps neither
                break
        await self._forget_now_and_then()
        return fired

    async def _forget_now_and_then(self) -> None:
        now = self._clock.now_us()  # the process's clock suffices: the retention time need not be exact
        if abs(now - self._forgot_us) >= _FORGET_US:
            await self._database.write(lambda connection: _forget(connection, now))
            self._forgot_us = now

    async def _fire(self, schedule_id: str) -> bool:
        try:
            thread_key = await self._database.write(
                lambda connection: _tell(connection, schedule_id, self._now(connection))
            )
        except RuleError as error:
            _log.error("reminder cannot be delivered", schedule_id=schedule_id, problem=str(error))
            return False
        if thread_key is None:
            return False
        reach("agent.schedule.fired")
        self._news.tell(thread_key)
        self._delivery.wake()
        return True

    async def _until_next(self) -> float:
        """Return the seconds to wait; an overdue reminder that could not be delivered waits for the next poll."""
        query = sa.select(sa.func.min(SCHEDULES.c.due_us)).where(SCHEDULES.c.state == "active")

        def work(connection: Connection) -> float:
            due = connection.execute(query).scalar()
            left = None if due is None else (due - self._now(connection)) / MICROSECONDS
            return self._poll_seconds if left is None or left <= 0 else min(left, self._poll_seconds)

        return await self._database.read(work)

    def _now(self, connection: Connection) -> int:
        return self._now_of(connection, self._clock.now_us())


def _due(connection: Connection, now: int) -> Sequence[str]:
    silent = sa.exists().where(THREADS.c.thread_key == SCHEDULES.c.thread_key, THREADS.c.handed_off)
    query = sa.select(SCHEDULES.c.schedule_id).where(SCHEDULES.c.state == "active", SCHEDULES.c.due_us <= now, ~silent)
    return list(connection.execute(query.order_by(SCHEDULES.c.due_us).limit(_PAGE)).scalars())


def _forget(connection: Connection, now: int) -> None:
    connection.execute(
        sa.delete(SCHEDULES).where(SCHEDULES.c.state != "active", SCHEDULES.c.updated_us < now - KEPT_US)
    )


def _tell(connection: Connection, schedule_id: str, now: int) -> str | None:
    """Advance a schedule and queue its message in this transaction; return its thread, or None if no longer due."""
    row = connection.execute(sa.select(SCHEDULES).where(SCHEDULES.c.schedule_id == schedule_id)).one_or_none()
    if row is None or row.state != "active" or row.due_us > now:
        return None
    if _is_handed_off(connection, row.thread_key):
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
    # no run and no lease: the message is a fact of the thread, independent of any run in progress there
    firing = Lease("", message_id, row.thread_id, Owner(row.tenant, row.user_id), "", 0)
    append_event(connection, firing, "message", {"message_id": message_id, "text": text}, once="reminder", now_us=now)
    told = {"id": message_id, "role": "assistant", "text": text, "create_us": now}
    queue_transcript(connection, firing, [told], now_us=now)
    return firing.thread_key


def _is_handed_off(connection: Connection, thread_key: str) -> bool:
    """Return True if a person has the thread, which cannot change before the commit: the reminder waits until then."""
    query = sa.select(THREADS.c.handed_off).where(THREADS.c.thread_key == thread_key).with_for_update()
    return bool(connection.execute(query).scalar())


def _text(row: Row[Any], then: Next, now: int) -> str:
    language: Language = "en" if row.language == "en" else "es"
    due: datetime = to_local(row.due_us, zone(row.time_zone))
    text, shown = to_text(row.text), due.strftime(_SHOWN)
    if then.passed > 1:
        return message("reminder_missed", language, text=text, due=shown, zone=row.time_zone, passed=then.passed)
    if now - row.due_us > LATE_US:
        return message("reminder_late", language, text=text, due=shown, zone=row.time_zone)
    return message("reminder_on_time", language, text=text)
