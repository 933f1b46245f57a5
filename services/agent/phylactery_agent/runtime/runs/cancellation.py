"""Cancelling a run: one that waits ends at once, one that is served ends at its next checkpoint."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Record
from phylactery_chassis.errors import FailedPrecondition
from phylactery_chassis.util.clock import MICROSECONDS, Clock
from sqlalchemy.engine import Connection, Row

from phylactery_agent.runtime.runs.lifecycle import end
from phylactery_agent.runtime.runs.status import RunStatus, before
from phylactery_agent.runtime.runs.store import owned_run
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.records import Ending, Lease, Owner
from phylactery_agent.runtime.storage.schema import RUNS
from phylactery_agent.runtime.turn.canned_replies import CANCELLED, apology
from phylactery_agent.tools.registry import ToolRegistry


class Cancellations:
    """Cancellation of runs at a person's request."""

    def __init__(self, database: Database, clock: Clock, tools: ToolRegistry) -> None:
        self._database, self._clock, self._tools = database, clock, tools

    async def request(self, owner: Owner, run_id: str) -> None:
        """End a run that waits, durably, or note that one which is served shall end; a cancelled one stays so.

        Raise NotFound RUN_NOT_FOUND, and FailedPrecondition RUN_ENDED for one that has ended otherwise.
        """
        clock = self._clock

        def work(connection: Connection) -> tuple[str, float] | None:
            row = owned_run(connection, owner, run_id, lock=True)
            now = clock.now_us()
            if row.status == RunStatus.SUSPENDED:
                end_now(connection, owner, row, now, self._tools)
                return row.graph, (now - row.created_us) / MICROSECONDS
            if row.status in before(RunStatus.CANCELLED):
                this = sa.update(RUNS).where(RUNS.c.run_id == run_id)
                connection.execute(this.values(cancel_us=now, cancel_reason=""))
            elif row.status != RunStatus.CANCELLED:
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


def end_now(connection: Connection, owner: Owner, row: Row[Any] | Record, now: int, tools: ToolRegistry) -> None:
    """End an unserved run, whose row is locked, with its event and, if storing is allowed, its transcript."""
    lease = Lease(row.run_id, row.turn_id, row.thread_id, owner, holder="", fence=row.fence + 1)
    ending = Ending(
        status=RunStatus.CANCELLED,
        reason=CANCELLED,
        reply_id=f"{lease.turn_id}.cancelled",
        reply_text=apology(CANCELLED, "en" if row.language == "en" else "es"),
        tells_others=True,
    )
    end(connection, lease, RunStatus(row.status), ending, now, tools=tools, cancel_us=now)
