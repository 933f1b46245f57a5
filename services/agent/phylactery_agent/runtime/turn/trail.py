"""The trail of executed nodes: written with the checkpoint they lead to, shown to people, used for nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.statements import RowInsert, Update
from phylactery_chassis.util.clock import Clock
from sqlalchemy.engine import Connection

from phylactery_agent.ports import NodeStep
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import RUNS, STEPS
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites, Work

MAX_KEPT: Final = 500
"""Supersteps of one run that are kept: a run that continues for months must not fill the disk with its trail."""

_MAX_WORD: Final = 64
_SLOT: Final = "steps"

_ADD = RowInsert(
    STEPS,
    "run_id",
    "superstep",
    "position",
    "turn_id",
    "node",
    "started_us",
    "duration_us",
    "next_nodes",
    "tool_call_id",
    "finish_reason",
    otherwise="ON CONFLICT DO NOTHING",
)
_COUNT = Update(sa.update(RUNS).where(RUNS.c.run_id == sa.bindparam("run")).values(supersteps=sa.bindparam("reached")))
_DROP = Update(
    sa.delete(STEPS).where(STEPS.c.run_id == sa.bindparam("run"), STEPS.c.superstep <= sa.bindparam("before"))
)


class RunTrail:
    """Implementation of ports.Trail for one turn, counting on from the superstep its run had when it was claimed."""

    def __init__(
        self,
        clock: Clock,
        lease: Lease,
        *,
        supersteps: int,
        begins: Callable[[], None] = lambda: None,
        noted: Callable[[], None] = lambda: None,
    ) -> None:
        """Call ``begins`` before each node, which may raise to stop the run there, and ``noted`` after each."""
        self._clock, self._lease, self._superstep = clock, lease, supersteps
        self._begins, self._tell = begins, noted
        self._position, self._graph_step = 0, -1
        self._noted: list[tuple[Any, ...]] = []

    def begin(self) -> None:
        """Announce that a node is about to begin. Raise if the run must stop before it does."""
        self._begins()

    def now_us(self) -> int:
        """Return the time, in microseconds since the epoch."""
        return self._clock.now_us()

    def note(self, step: NodeStep) -> None:
        """Record a node that ended."""
        if step.graph_step == self._graph_step:
            self._position += 1
        else:
            self._superstep, self._position, self._graph_step = self._superstep + 1, 0, step.graph_step
        self._noted.append(
            (
                self._lease.run_id,
                self._superstep,
                self._position,
                self._lease.turn_id,
                step.node,
                step.started_us,
                step.duration_us,
                json.dumps(step.next_nodes),
                step.tool_call_id,
                step.finish_reason[:_MAX_WORD],
            )
        )
        self._tell()

    def hold(self, writes: TurnWrites) -> None:
        """Add the steps noted since the last call to the turn's deferred writes, merged with those already deferred."""
        if not self._noted:
            return
        run_id, reached = self._lease.run_id, self._superstep
        noted: list[tuple[Any, ...]] = [*(writes.held(_SLOT) or ()), *self._noted]
        self._noted = []

        def write(connection: Connection, _now_us: int) -> None:
            _ADD.later(connection, noted)
            _COUNT.later(connection, {"run": run_id, "reached": reached})
            if reached > MAX_KEPT:
                _DROP.later(connection, {"run": run_id, "before": reached - MAX_KEPT})

        writes.hold(write, slot=_SLOT, kept=noted)


class TrailHolder:
    """Implementation of saver.Holder that defers each checkpoint together with the nodes that led to it.

    Neither is ever kept without the other. If a checkpoint is dropped, so are its nodes: they run, and are noted,
    again.
    """

    def __init__(self, writes: TurnWrites, trail: RunTrail) -> None:
        self._writes, self._trail = writes, trail

    def hold(self, work: Work[None], *, slot: object, kept: Any) -> None:
        """Defer a checkpoint together with the nodes noted since the previous one."""
        self._trail.hold(self._writes)
        self._writes.hold(work, slot=slot, kept=kept)

    def held(self, slot: object) -> Any:
        """Return the value kept with the checkpoint deferred in a slot."""
        return self._writes.held(slot)

    async def flush(self) -> None:
        """Write everything deferred."""
        await self._writes.flush()
