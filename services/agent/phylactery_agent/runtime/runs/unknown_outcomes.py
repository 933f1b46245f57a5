"""Effects with unknown outcome: a person resolves one, and the resolution is reported to RiskGate."""

from __future__ import annotations

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import FailedPrecondition, NotFound
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.ports.effects import EffectEvent, EffectState, advance, before
from phylactery_agent.runtime.effects.outbox import queue_outcome
from phylactery_agent.runtime.runs.store import owned_run, tool_call_of, with_thread
from phylactery_agent.runtime.storage.records import Lease, Owner, Resolution, StoredToolCall
from phylactery_agent.runtime.storage.schema import TOOL_CALLS

NOT_DONE = "NOT_DONE"


class Resolutions:
    """Settlement of effects with unknown outcome by a person."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def resolve(self, owner: Owner, run_id: str, tool_call_id: str, resolution: Resolution) -> StoredToolCall:
        """Commit the resolution of an effect, and queue the report in the same transaction; idempotent.

        Raise NotFound RUN_NOT_FOUND and TOOL_CALL_NOT_FOUND, FailedPrecondition NOT_IN_DOUBT.
        """
        clock = self._clock

        def work(connection: Connection) -> StoredToolCall:
            run = owned_run(connection, owner, run_id, lock=True)
            here = sa.and_(TOOL_CALLS.c.run_id == run_id, TOOL_CALLS.c.tool_call_id == tool_call_id)
            row = connection.execute(with_thread().where(here)).one_or_none()
            if row is None:
                raise NotFound(
                    "TOOL_CALL_NOT_FOUND",
                    f"the run '{run_id}' has no tool call '{tool_call_id}'",
                    metadata={"tool_call_id": tool_call_id},
                )
            if row.resolution == resolution:
                return tool_call_of(row)
            if row.state not in before(EffectEvent.RESOLVE):
                raise _not_in_doubt(tool_call_id, row.state, row.resolution)
            resolved = advance(EffectState(row.state), EffectEvent.RESOLVE)
            now, happened = clock.now_us(), resolution == "happened"
            values = {"status": "success" if happened else "error", "error_code": "" if happened else NOT_DONE}
            connection.execute(
                sa.update(TOOL_CALLS)
                .where(here)
                .values(state=resolved, resolution=resolution, updated_us=now, **values)
            )
            lease = Lease(run_id, run.turn_id, run.thread_id, owner, holder="", fence=run.fence)
            report = {
                "execution_id": row.execution_id,
                "outcome": "SUCCEEDED" if happened else "FAILED",
                "result_hash": "",
                "result_size": 0,
                "error_code": values["error_code"],
                "not_done": not happened,
            }
            queue_outcome(connection, lease, report, now_us=now)
            return tool_call_of(connection.execute(with_thread().where(here)).one())

        return await self._database.write(work)


def _not_in_doubt(tool_call_id: str, state: str, resolution: str) -> FailedPrecondition:
    said = f", for a person said that it {resolution.replace('_', ' ')}" if resolution else ""
    return FailedPrecondition(
        "NOT_IN_DOUBT",
        f"the tool call '{tool_call_id}' is {state}{said}; only one in doubt can be settled",
        metadata={"state": state},
    )
