"""Stored reminders: created once per effect, listed and cancelled by their owner."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns
from phylactery_chassis.db.database import Database
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection, Row

from phylactery_agent.ports import Reminder, ReminderRefusedError, WantedReminder
from phylactery_agent.rules.intents import parse_reply
from phylactery_agent.runtime.dispatch.leases import require_lease
from phylactery_agent.runtime.storage.records import Lease, Owner, StoredTurn
from phylactery_agent.runtime.storage.schema import INBOX, SCHEDULES, TEXT, THREADS, to_bytes
from phylactery_agent.timeparse.recurrence import next_after
from phylactery_agent.timeparse.vocabulary import fold

MAX_PER_USER: Final = 100
"""Default limit of active reminders per person."""
_MAX_LOOKED_AT: Final = 1_000
"""Active reminders read in one lookup: the maximum that the setting allows."""
_REMINDER = Columns(Reminder, SCHEDULES, forms={"text": TEXT}, besides=("reminder_id",))


@dataclass(frozen=True, slots=True)
class Reminding:
    """Dependencies shared by all turns' reminders: the store, the limit per person, and the scheduler's wake-up."""

    database: Database
    clock: Clock
    time_zone: str = "UTC"
    max_per_user: int = MAX_PER_USER
    wake: Callable[[], None] = lambda: None


class TurnReminders:
    """Implementation of ports.Reminders for one turn; request_turn is the turn that brought the request, if earlier."""

    def __init__(
        self,
        shared: Reminding,
        lease: Lease,
        turn: StoredTurn,
        language: str,
        request_turn: str,
        *,
        time_zone: str = "",
    ) -> None:
        """``time_zone`` is the IANA name of the zone that the person told, empty if none is known."""
        self._time_zone = time_zone or shared.time_zone
        self._shared, self._lease, self._turn, self._language = shared, lease, turn, language
        own_words = turn.kind == "message" and parse_reply(turn.text) is None
        self._asked_in = turn.turn_id if own_words or not request_turn else request_turn

    @property
    def time_zone(self) -> str:
        """The person's time zone, or the configured one."""
        return self._time_zone

    async def asked_us(self) -> int:
        """Return when the person made the request; an approval that came later does not change it."""
        if self._asked_in == self._turn.turn_id:
            return self._turn.created_us
        query = sa.select(INBOX.c.created_us).where(INBOX.c.turn_id == self._asked_in)
        found = await self._shared.database.read(lambda connection: connection.execute(query).scalar())
        return self._turn.created_us if found is None else int(found)

    async def create(self, wanted: WantedReminder, *, key: str) -> Reminder:
        """Store a reminder, once per key.

        Raise ReminderRefusedError with TOO_MANY_REMINDERS, LeaseLostError, Unavailable.
        """
        shared, lease, language = self._shared, self._lease, self._language

        def work(connection: Connection) -> Reminder:
            there = connection.execute(sa.select(SCHEDULES).where(SCHEDULES.c.effect_key == key)).one_or_none()
            if there is not None:
                return _reminder(there)
            now, schedule_id = shared.clock.now_us(), new_id("rem")
            require_lease(connection, lease, now)
            _require_room(connection, lease.owner, shared.max_per_user)
            connection.execute(
                sa.insert(SCHEDULES).values(
                    schedule_id=schedule_id,
                    effect_key=key,
                    tenant=lease.owner.tenant,
                    user_id=lease.owner.user_id,
                    thread_key=lease.thread_key,
                    thread_id=lease.thread_id,
                    language=language,
                    text=to_bytes(wanted.text),
                    repeat=wanted.repeat,
                    time_zone=wanted.time_zone,
                    start_us=wanted.due_us,
                    due_us=wanted.due_us,
                    state="active",
                    cancel_key="",
                    created_us=now,
                    updated_us=now,
                )
            )
            return _get(connection, schedule_id)

        kept = await shared.database.write(work)
        shared.wake()
        return kept

    async def list(self, *, limit: int) -> Sequence[Reminder]:
        """Return the person's active reminders in all their threads, the next due first."""
        owner = self._lease.owner
        return await self._shared.database.read(lambda connection: _active(connection, owner, limit))

    async def cancel(self, name: str, *, key: str) -> Reminder:
        """Cancel one active reminder by its id, or by its text if that matches only one.

        Raise ReminderRefusedError with REMINDER_NOT_FOUND or REMINDER_AMBIGUOUS, LeaseLostError, Unavailable.
        """
        shared, lease, owner = self._shared, self._lease, self._lease.owner

        def work(connection: Connection) -> Reminder:
            before = sa.select(SCHEDULES).where(_mine(owner), SCHEDULES.c.cancel_key == key)
            there = connection.execute(before).one_or_none()
            if there is not None:
                return _reminder(there)
            now = shared.clock.now_us()
            require_lease(connection, lease, now)
            meant = _meant(_active(connection, owner, _MAX_LOOKED_AT), name)
            done = connection.execute(
                sa.update(SCHEDULES)
                .where(SCHEDULES.c.schedule_id == meant.reminder_id, SCHEDULES.c.state == "active")
                .values(state="cancelled", cancel_key=key, updated_us=now)
            )
            if done.rowcount != 1:
                raise _not_found()  # it became due or was removed at this moment
            return _get(connection, meant.reminder_id)

        return await shared.database.write(work)

    async def uncreate(self, created_key: str, *, key: str) -> Reminder:
        """Cancel the reminder created under a key, once per key; see ports.Reminders."""
        shared, lease, owner = self._shared, self._lease, self._lease.owner

        def work(connection: Connection) -> Reminder:
            query = sa.select(SCHEDULES).where(_mine(owner), SCHEDULES.c.effect_key == created_key)
            there = connection.execute(query.with_for_update()).one_or_none()
            if there is None:
                raise _not_found()
            if there.cancel_key == key:
                return _reminder(there)
            if there.state != "active":
                told = "it was cancelled since" if there.state == "cancelled" else "it has rung"
                reason = "REMINDER_CANCELLED" if there.state == "cancelled" else "REMINDER_RANG"
                raise ReminderRefusedError(reason, told)
            now = shared.clock.now_us()
            require_lease(connection, lease, now)
            this = sa.update(SCHEDULES).where(SCHEDULES.c.schedule_id == there.schedule_id)
            connection.execute(this.values(state="cancelled", cancel_key=key, updated_us=now))
            return _get(connection, there.schedule_id)

        return await shared.database.write(work)

    async def uncancel(self, cancelled_key: str, *, key: str) -> tuple[Sequence[Reminder], Sequence[Reminder]]:
        """Set again what was cancelled under a key, once per key; see ports.Reminders.

        A repeated one goes on with the first time that is still to come.
        """
        shared, lease, owner = self._shared, self._lease, self._lease.owner

        def work(connection: Connection) -> tuple[Sequence[Reminder], Sequence[Reminder]]:
            now = shared.clock.now_us()
            require_lease(connection, lease, now)
            of_key = sa.select(SCHEDULES).where(_mine(owner), SCHEDULES.c.state == "cancelled")
            passed = list[Reminder]()
            query = of_key.where(SCHEDULES.c.cancel_key == cancelled_key).order_by(SCHEDULES.c.due_us)
            for row in connection.execute(query.with_for_update()).all():
                due_us = row.due_us
                if due_us <= now:
                    due_us = next_after(row.repeat, row.start_us, row.time_zone, due_us=due_us, after_us=now).due_us
                if due_us is None:
                    passed.append(_reminder(row))
                    continue
                _require_room(connection, owner, shared.max_per_user)
                this = sa.update(SCHEDULES).where(SCHEDULES.c.schedule_id == row.schedule_id)
                connection.execute(this.values(state="active", due_us=due_us, cancel_key=key, updated_us=now))
            restored = sa.select(SCHEDULES).where(_mine(owner), SCHEDULES.c.cancel_key == key)
            found = connection.execute(restored.where(SCHEDULES.c.state != "cancelled").order_by(SCHEDULES.c.due_us))
            return [_reminder(row) for row in found], passed

        found = await shared.database.write(work)
        shared.wake()
        return found

    async def stands(self, reminder_id: str) -> str:
        """Return a reminder's state as it is stored now, or an empty string if there is none."""
        query = sa.select(SCHEDULES.c.state).where(_mine(self._lease.owner), SCHEDULES.c.schedule_id == reminder_id)
        return str(await self._shared.database.read(lambda connection: connection.execute(query).scalar()) or "")

    async def cancel_all(self, *, key: str) -> Sequence[Reminder]:
        """Cancel all the person's active reminders, once per key. Raise LeaseLostError, Unavailable."""
        shared, lease, owner = self._shared, self._lease, self._lease.owner
        mine = _mine(owner)

        def work(connection: Connection) -> Sequence[Reminder]:
            under_key = sa.select(SCHEDULES).where(mine, SCHEDULES.c.cancel_key == key).order_by(SCHEDULES.c.due_us)
            there = connection.execute(under_key).all()
            if not there:
                now = shared.clock.now_us()
                require_lease(connection, lease, now)
                active = sa.update(SCHEDULES).where(mine, SCHEDULES.c.state == "active")
                connection.execute(active.values(state="cancelled", cancel_key=key, updated_us=now))
                there = connection.execute(under_key).all()
            return [_reminder(row) for row in there]

        return await shared.database.write(work)


def _mine(owner: Owner) -> sa.ColumnElement[bool]:
    return sa.and_(SCHEDULES.c.tenant == owner.tenant, SCHEDULES.c.user_id == owner.user_id)


def _require_room(connection: Connection, owner: Owner, most: int) -> None:
    """Raise ReminderRefusedError if the person has reached the limit.

    Their threads are locked first, so that two concurrent writes see each other.
    """
    theirs = sa.select(THREADS.c.thread_key).where(THREADS.c.tenant == owner.tenant, THREADS.c.user_id == owner.user_id)
    connection.execute(theirs.order_by(THREADS.c.thread_key).with_for_update()).all()
    count = sa.select(sa.func.count()).where(
        SCHEDULES.c.tenant == owner.tenant, SCHEDULES.c.user_id == owner.user_id, SCHEDULES.c.state == "active"
    )
    if connection.execute(count).scalar_one() >= most:
        raise ReminderRefusedError("TOO_MANY_REMINDERS", f"there are {most} reminders already; cancel one first")


def _meant(reminders: Sequence[Reminder], name: str) -> Reminder:
    """Return the one reminder that a name identifies: by id, by its whole text, or by a part of it."""
    wanted = fold(name)
    for fits in (
        [one for one in reminders if one.reminder_id == name],
        [one for one in reminders if fold(one.text) == wanted],
        [one for one in reminders if wanted and wanted in fold(one.text)],
    ):
        if len(fits) == 1:
            return fits[0]
        if fits:
            raise ReminderRefusedError(
                "REMINDER_AMBIGUOUS", f"{len(fits)} reminders are called that; name one by its id"
            )
    raise _not_found()


def _not_found() -> ReminderRefusedError:
    return ReminderRefusedError("REMINDER_NOT_FOUND", "no active reminder of yours has that id or text")


def _active(connection: Connection, owner: Owner, limit: int) -> Sequence[Reminder]:
    query = sa.select(SCHEDULES).where(
        SCHEDULES.c.tenant == owner.tenant, SCHEDULES.c.user_id == owner.user_id, SCHEDULES.c.state == "active"
    )
    rows = connection.execute(query.order_by(SCHEDULES.c.due_us, SCHEDULES.c.schedule_id).limit(limit))
    return [_reminder(row) for row in rows]


def _get(connection: Connection, schedule_id: str) -> Reminder:
    return _reminder(connection.execute(sa.select(SCHEDULES).where(SCHEDULES.c.schedule_id == schedule_id)).one())


def _reminder(row: Row[Any]) -> Reminder:
    return _REMINDER.read(row, reminder_id=row.schedule_id)
