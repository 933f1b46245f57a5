"""Deletion of a thread: its runs end, what is open at RiskGate is closed, and all stored data is removed.

Nothing is removed before the last transaction, so an interrupted request can simply be repeated. From then on the
outbox notifies the other services as soon as they are available.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.scrub import forget_log, note_removed
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util import crashpoints
from phylactery_chassis.util.clock import Clock, pause
from phylactery_chassis.util.ids import new_id
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.outbox import queue_deletion, queue_task_end
from phylactery_agent.runtime.intake.changes import MAX_CHANGE_US
from phylactery_agent.runtime.privacy.erasure_store import effect_keys, forget_noted, remove_threads
from phylactery_agent.runtime.runs.cancellation import end_now
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import INBOX, RUNS, THREADS, TOOL_CALLS
from phylactery_agent.tools.executor import Executor
from phylactery_agent.tools.registry import ToolRegistry

GRACE_SECONDS: Final = 30.0
"""Time, in seconds, that a started effect is given to finish before its outcome counts as unknown."""
_LOOK_SECONDS: Final = 1.0
_HOLDER: Final = "deletions"

_log = get_logger("deleting")


class DeletionStore:
    """SQL for the removal of a thread. Every method raises Unavailable STORE_UNAVAILABLE if the database fails."""

    def __init__(self, database: Database, clock: Clock, tools: ToolRegistry) -> None:
        self._database, self._clock, self._tools = database, clock, tools

    async def begin(self, owner: Owner, thread_id: str) -> tuple[str, Sequence[str]]:
        """Cancel what runs in the thread and remove the waiting turns that were never begun.

        Return the run being served, or an empty string, and the turns removed.
        """

        def work(connection: Connection) -> tuple[str, Sequence[str]]:
            now, key = self._clock.now_us(), owner.thread_key(thread_id)
            active = sa.select(RUNS).where(RUNS.c.thread_key == key, RUNS.c.status.in_(ACTIVE))
            served, lead = "", ""
            for run in connection.execute(active.order_by(RUNS.c.run_id).with_for_update()).all():
                if run.status == RunStatus.RUNNING:
                    served, lead = run.run_id, run.turn_id
                    this = sa.update(RUNS).where(RUNS.c.run_id == served)
                    connection.execute(this.values(cancel_us=now, cancel_reason=""))
                else:
                    end_now(connection, owner, run, now, self._tools)
            gone = connection.execute(
                sa.delete(INBOX)
                .where(INBOX.c.thread_key == key, INBOX.c.state == "waiting")
                .where(INBOX.c.turn_id != lead, sa.or_(INBOX.c.lead_turn == "", INBOX.c.lead_turn != lead))
                .returning(INBOX.c.turn_id)
            )
            return served, list(gone.scalars())

        return await self._database.write(work)

    async def is_served(self, run_id: str) -> bool:
        """Return True if a run is still being served."""
        query = sa.select(RUNS.c.run_id).where(RUNS.c.run_id == run_id, RUNS.c.status == RunStatus.RUNNING)
        return await self._database.read(lambda connection: connection.execute(query).first() is not None)

    async def effects(self, thread_key: str) -> Sequence[str]:
        """Return the keys of every effect that the thread's runs performed or began."""
        runs = sa.select(RUNS.c.run_id).where(RUNS.c.thread_key == thread_key)
        return await self._database.read(lambda connection: effect_keys(connection, TOOL_CALLS.c.run_id.in_(runs)))

    async def remove(self, owner: Owner, thread_id: str) -> Sequence[str]:
        """Remove everything of the thread and queue the notifications to other services, in one transaction.

        Return the unhandled turns, so that those waiting for them can be notified. The thread must be held.
        """

        def work(connection: Connection) -> Sequence[str]:
            now, key, request_id = self._clock.now_us(), owner.thread_key(thread_id), new_id("del")
            active = sa.select(RUNS).where(RUNS.c.thread_key == key, RUNS.c.status.in_(ACTIVE)).with_for_update()
            for row in connection.execute(active).all():
                end_now(connection, owner, row, now, self._tools)
            thread = sa.select(THREADS.c.thread_key).where(THREADS.c.thread_key == key).with_for_update()
            if connection.execute(thread).first() is None:
                return ()
            waiting = sa.select(INBOX.c.turn_id).where(INBOX.c.thread_key == key, INBOX.c.state == "waiting")
            unhandled = list(connection.scalars(waiting))
            lease = Lease("", request_id, thread_id, owner, holder="", fence=0)
            for task_id in connection.scalars(
                sa.select(INBOX.c.task_id).where(
                    INBOX.c.thread_key == key, INBOX.c.task_id != "", INBOX.c.handled_us > now - MAX_CHANGE_US
                )
            ).all():  # what was kept of them for a correction is removed too
                queue_task_end(connection, lease, task_id, now_us=now, once=f"{task_id}:deleted")
            queue_deletion(connection, lease, request_id, now_us=now)
            remove_threads(connection, [key])
            note_removed(connection)
            return unhandled

        return await self._database.write(work)

    async def forget_log(self) -> None:
        """Empty SQLite's log, which still contains removed rows; a reader of old pages may keep some until later.

        The contents of free pages in the file are removed by the next erasure, or when the agent starts.
        """
        await forget_log(self._database)


@dataclass(eq=False)
class Deletions:
    """Deletion of threads, one at a time."""

    store: DeletionStore
    runner: Dispatcher
    delivery: Delivery
    news: ThreadNotifier
    executor: Executor
    grace_seconds: float = GRACE_SECONDS
    _at_once: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def delete(self, owner: Owner, thread_id: str) -> None:
        """Remove a thread of the owner; a missing one is not an error. Raise Unavailable STORE_UNAVAILABLE."""
        key = owner.thread_key(thread_id)
        served, gone = await self.store.begin(owner, thread_id)
        crashpoints.reach("agent.delete.begun")
        for turn_id in gone:
            self.news.tell(turn_id)
        if served:
            await self._ended(key, served)
        async with self._at_once:
            held = await self.runner.hold([key], by=_HOLDER)
            try:
                await forget_noted(self.executor.forget, await self.store.effects(key), of="thread")
                crashpoints.reach("agent.delete.forgotten")
                unhandled = await self.store.remove(owner, thread_id)
            finally:
                await self.runner.release(held, by=_HOLDER)
                self.runner.wake(key)  # messages that arrived meanwhile open the thread again
        crashpoints.reach("agent.delete.removed")
        for name in (key, *unhandled):
            self.news.tell(name)
        self.delivery.wake()
        await self.store.forget_log()
        _log.info("a thread was deleted", thread=key)

    async def _ended(self, key: str, run_id: str) -> None:
        """Wait, for a bounded time, until the run is no longer served, so that no effect is interrupted."""
        try:
            async with asyncio.timeout(self.grace_seconds):
                with self.news.listen(key) as news:
                    while await self.store.is_served(run_id):
                        await pause(news, _LOOK_SECONDS)
                        news.clear()
        except TimeoutError:
            _log.warning("a run did not end in time; what it had begun is in doubt", run_id=run_id)
