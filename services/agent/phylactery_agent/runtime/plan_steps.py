"""The steps of a plan as a run's row keeps them, for people to look at."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db.statements import Query, RowUpdate
from sqlalchemy.engine import Connection

from phylactery_agent.runtime.events import append_event
from phylactery_agent.runtime.model import Lease
from phylactery_agent.runtime.schema import RUNS

_KEPT = Query(sa.select(RUNS.c.steps).where(RUNS.c.run_id == sa.bindparam("of_run")))
_SET = RowUpdate(RUNS, "run_id")


def close_steps(connection: Connection, lease: Lease, now: int) -> None:
    """Marks as failed every step of a run that ended while they were under way, and tells the thread.

    What was never begun stays pending.
    """
    kept = _KEPT.one(connection, {"of_run": lease.run_id})
    steps: Sequence[Mapping[str, Any]] = [] if kept is None else json.loads(kept.steps)
    closed = [{**step, "status": "failed"} if step["status"] == "running" else step for step in steps]
    if closed == list(steps):
        return
    _SET.later(connection, lease.run_id, steps=json.dumps(closed))
    for before, after in zip(steps, closed, strict=True):
        if before is not after:
            append_event(connection, lease, "step", after, once=f"step_closed:{after['step_id']}", now_us=now)
