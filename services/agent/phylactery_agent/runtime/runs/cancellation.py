"""Cancelling a run: one that waits ends at once, one that is served ends at its next checkpoint."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Record
from phylactery_chassis.errors import FailedPrecondition
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from sqlalchemy.engine import Connection, Row

from phylactery_agent.checkpoints import rows as checkpoints
from phylactery_agent.runtime.effects.ledger import close_open_effects, deny_proposals
from phylactery_agent.runtime.effects.outbox import queue_task_end, queue_transcript, queue_withdrawal
from phylactery_agent.runtime.runs.store import close_steps, keeps_nothing, owned_run, with_asked
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.events import append_event
from phylactery_agent.runtime.storage.records import Lease, Owner
from phylactery_agent.runtime.storage.schema import ACTIVE, RUNS
from phylactery_agent.runtime.turn.canned_replies import CANCELLED, apology
from phylactery_agent.runtime.turn.model_calls import forget_replies
from phylactery_agent.runtime.turn.tasks import tasks_of


class Cancellations:
    """Takes a person's word that a run shall end."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def request(self, owner: Owner, run_id: str) -> None:
        """End a run that waits, durably, or note that one which is served shall end; a cancelled one stays so.

        Raise NotFound RUN_NOT_FOUND, and FailedPrecondition RUN_ENDED for one that has ended otherwise.
        """
        clock = self._clock

        def work(connection: Connection) -> tuple[str, float] | None:
            row = owned_run(connection, owner, run_id, lock=True)
            now = clock.now_us()
            if row.status == "suspended":
                end_now(connection, owner, row, now)
                return row.graph, (now - row.created_us) / MICROSECONDS
            if row.status in ACTIVE:
                connection.execute(sa.update(RUNS).where(RUNS.c.run_id == run_id).values(cancel_us=now))
            elif row.status != "cancelled":
                raise ended(run_id, row.status)
            return None

        if at_once := await self._database.write(work):
            metrics.run_cancelled(*at_once)


def ended(run_id: str, status: str) -> FailedPrecondition:
    """Return what is wrong with cancelling a run that has ended otherwise."""
    return FailedPrecondition(
        "RUN_ENDED",
        f"the run '{run_id}' is {status} already, so there is nothing to cancel",
        metadata={"status": status},
    )


def end_now(connection: Connection, owner: Owner, row: Row[Any] | Record, now: int) -> None:
    """End a run nobody serves: its effects settle, its questions are withdrawn, its state goes; the thread is told."""
    lease = Lease(row.run_id, row.turn_id, row.thread_id, owner, holder="", fence=row.fence + 1)
    close_open_effects(connection, lease, now)
    deny_proposals(connection, lease, CANCELLED, now)
    for opened in tasks_of(connection, row.run_id):
        queue_task_end(connection, lease, opened.task_id, now_us=now)
    queue_withdrawal(connection, lease, now_us=now)
    close_steps(connection, lease, now)
    _say(connection, lease, row.language, now)
    finished = {"status": "RUN_STATUS_CANCELLED", "reason": CANCELLED}
    append_event(connection, lease, "run_finished", finished, once="run_cancelled", now_us=now)
    checkpoints.forget_thread(connection, lease.run_id)
    forget_replies(connection, row.run_id)
    connection.execute(
        sa.update(RUNS)
        .where(RUNS.c.run_id == row.run_id)
        .values(
            status="cancelled",
            reason=CANCELLED,
            approval_id="",
            card="[]",
            fence=lease.fence,
            cancel_us=now,
            updated_us=now,
        )
    )


def _say(connection: Connection, lease: Lease, language: str, now: int) -> None:
    """Tell the thread, and the transcript unless nothing of the run may be kept, that it was cancelled."""
    reply_id, said = f"{lease.turn_id}.cancelled", apology(CANCELLED, "en" if language == "en" else "es")
    text = with_asked(connection, lease, said)
    told = {"message_id": reply_id, "text": text}
    append_event(connection, lease, "message", told, once="message_cancelled", now_us=now)
    if not keeps_nothing(connection, lease.run_id):
        message = {"id": reply_id, "role": "assistant", "text": text, "create_us": now}
        queue_transcript(connection, lease, [message], once=reply_id, now_us=now)
