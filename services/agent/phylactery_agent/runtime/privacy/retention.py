"""Retention of texts, events and delivered outbox messages; nothing of a live run is ever removed or emptied.

The remaining events of a thread have no gap: first_sequence is where they begin, and it only ever grows.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.runs.status import ACTIVE
from phylactery_agent.runtime.storage.schema import (
    ESCALATION_ENTRIES,
    ESCALATIONS,
    EVENTS,
    FORM_SESSIONS,
    FORM_SUBMISSIONS,
    INBOX,
    OUTBOX,
    RUNS,
    THREADS,
)

SWEEP_SECONDS: Final = 3_600.0
_THREADS_AT_ONCE: Final = 200
_TURNS_AT_ONCE: Final = 100
_EMPTIED: Final[dict[str, dict[str, Any]]] = {
    "message": {"text": "", "text_erased": True, "choices": []},
    "message_delta": {"text": ""},
    "step": {"description": ""},
}
"""What the texts of events become, by their kind. Other kinds hold none, or, as a file's name, something fetched by."""
_AT_ONCE: Final = 1_000
"""Events removed in one transaction, so that no turn waits long for it."""
_DAY_US: Final = 86_400 * MICROSECONDS
_DELIVERED_US: Final = _DAY_US
"""Retention of a delivered message, in microseconds: it shows when it was delivered, to help explain a missing one."""

_log = get_logger("retention")


class Retention:
    """Removal of old events, ended escalations and delivered messages; several processes may run it at once."""

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        days: int,
        repeat_days: int = 7,
        undo_days: int = 30,
        forget_versions: Callable[[int], None] = lambda _before_us: None,
    ) -> None:
        """Take the number of days that events are kept, 0 keeps them forever, and that texts of ended runs are.

        undo_days is how long what was done can be taken back; forget_versions removes earlier versions of files from
        before a time.
        """
        self._undo_us, self._forget_versions = undo_days * _DAY_US, forget_versions
        self._database, self._clock, self._days, self._repeat_us = database, clock, days, repeat_days * _DAY_US

    async def run(self) -> None:
        """Sweep repeatedly until cancelled; the next round makes up for one that fails."""
        while True:
            try:
                messages = await self.prune()
                events = await self.sweep()
                await self.empty_texts()
                await self.forget_forms()
                await self.forget_versions()
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

    async def empty_texts(self) -> int:
        """Empty what was said and replied in turns of ended runs that are old enough, and return how many turns.

        A turn stays as it is in everything else, so a repeated request still finds it and never begins another run.
        Nothing reads these texts afterwards: memory has the transcript, and what is queued has a copy of its own. After
        a day it is done for runs of which nothing was to be stored. Raise Unavailable STORE_UNAVAILABLE.
        """
        now_us, emptied = self._clock.now_us(), 0
        while some := await self._database.write(partial(_empty_some, now_us=now_us, repeat_us=self._repeat_us)):
            emptied += some
            reach("agent.texts.emptied")
        if emptied:
            await forget_log(self._database)
        return emptied

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

    async def forget_versions(self) -> None:
        """Remove earlier versions of files that can no longer be undone. Raise OSError."""
        before_us = self._clock.now_us() - self._undo_us
        await asyncio.to_thread(self._forget_versions, before_us)

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


def _empty_some(connection: Connection, *, now_us: int, repeat_us: int) -> int:
    """Empty the texts of some turns, of their events and of their runs' steps, and return how many turns."""
    own, private = INBOX.alias(), INBOX.alias()
    keeps_nothing = sa.exists().where(private.c.run_id == own.c.run_id, private.c.run_id != "", private.c.do_not_store)
    before_us = sa.case((keeps_nothing, now_us - min(repeat_us, _DAY_US)), else_=now_us - repeat_us)
    live = sa.exists().where(
        RUNS.c.run_id == own.c.run_id, sa.or_(RUNS.c.status.in_(ACTIVE), RUNS.c.updated_us > before_us)
    )
    old = sa.select(own.c.turn_id, own.c.run_id).where(
        own.c.state == sa.literal_column("'handled'"),
        sa.not_(own.c.text_erased),
        own.c.handled_us <= before_us,
        own.c.handled_us <= now_us - min(repeat_us, _DAY_US),  # what the index is read by
        sa.not_(live),
    )
    page = old.order_by(own.c.handled_us).limit(_TURNS_AT_ONCE).with_for_update(of=own, skip_locked=True)
    turns = connection.execute(page).all()
    ids = [row.turn_id for row in turns]
    if not ids:
        return 0
    emptied = {"text": b"", "reply_text": b"", "others": None, "text_erased": True}
    connection.execute(sa.update(INBOX).where(INBOX.c.turn_id.in_(ids)).values(**emptied))
    told = sa.select(EVENTS.c.thread_key, EVENTS.c.sequence, EVENTS.c.kind, EVENTS.c.payload)
    for event in connection.execute(told.where(EVENTS.c.turn_id.in_(ids), EVENTS.c.kind.in_(_EMPTIED))).all():
        payload = {**json.loads(event.payload), **_EMPTIED[event.kind]}
        this = EVENTS.c.thread_key == event.thread_key, EVENTS.c.sequence == event.sequence
        connection.execute(sa.update(EVENTS).where(*this).values(payload=json.dumps(payload)))
    runs = sa.select(RUNS.c.run_id, RUNS.c.steps).where(RUNS.c.run_id.in_({row.run_id for row in turns}))
    for run in connection.execute(runs).all():
        steps = [{**step, **_EMPTIED["step"]} for step in json.loads(run.steps)]
        connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run.run_id).values(steps=json.dumps(steps)))
    return len(ids)


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
