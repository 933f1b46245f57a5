"""The ledger of effects: what was proposed, started, finished, or cannot be known. Rows outlive every process."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Literal

import sqlalchemy as sa
from phylactery_chassis.db.columns import Columns, Form
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, Record, RowUpdate, Update
from phylactery_chassis.util.crypto import sha256
from sqlalchemy.engine import Connection

from phylactery_agent.ports import BoundCall, EffectState, LedgerRow, ProposedCall
from phylactery_agent.ports.effects import EffectEvent, IllegalTransitionError, advance, after
from phylactery_agent.runtime.effects import undoing
from phylactery_agent.runtime.effects.outbox import RUN_ENDED, queue_observation, queue_outcome
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import RUNS, TOOL_CALLS, to_bytes, to_text
from phylactery_agent.runtime.turn.tasks import Result, observation, task_of
from phylactery_agent.runtime.turn.unit_of_work import TurnWrites
from phylactery_agent.tools.registry import ToolRegistry
from phylactery_agent.tools.specs import UNDO_WRITE

_MAX_WORD = 64

_LEDGER_ROW = Columns(
    LedgerRow,
    TOOL_CALLS,
    forms={"state": Form(EffectState), "output": Form(lambda data: None if data is None else to_text(data))},
)
_OF_RUN = TOOL_CALLS.c.run_id == sa.bindparam("of_run")
_ROW = Query(sa.select(TOOL_CALLS).where(_OF_RUN, TOOL_CALLS.c.tool_call_id == sa.bindparam("of_call")))
_STARTED = Query(sa.select(TOOL_CALLS).where(_OF_RUN, TOOL_CALLS.c.state == EffectState.STARTED))
_CALLS = Query(
    sa.select(*(column for column in TOOL_CALLS.c if column.name != "output"), sa.null().label("output"))
    .where(_OF_RUN)
    .order_by(TOOL_CALLS.c.ordinal)
)
_DONE_BEFORE = Query(
    sa.select(TOOL_CALLS.c.tool)
    .distinct()
    .join(RUNS, RUNS.c.run_id == TOOL_CALLS.c.run_id)
    .where(
        RUNS.c.thread_key == sa.bindparam("of_thread"),
        RUNS.c.run_id != sa.bindparam("of_run"),
        TOOL_CALLS.c.state == EffectState.FINISHED,
        TOOL_CALLS.c.status != "error",
    )
)
_READ = Query(
    sa.select(TOOL_CALLS.c.tool_call_id)
    .where(
        _OF_RUN,
        TOOL_CALLS.c.state != EffectState.PROPOSED,
        TOOL_CALLS.c.state != EffectState.DENIED,
        TOOL_CALLS.c.tool != "remember",
    )
    .limit(1)
)
_GIVEN = ("run_id", "tool_call_id", "tool", "plan_step", "args_hash", "content_hash", "fence", "tenant", "user_id")
_before = TOOL_CALLS.alias()
_PROPOSE = Update(
    sa.insert(TOOL_CALLS).values(
        **{name: sa.bindparam(f"its_{name}") for name in _GIVEN},
        ordinal=sa.select(sa.func.coalesce(sa.func.max(_before.c.ordinal), 0) + 1)
        .where(_before.c.run_id == sa.bindparam("of_run"))
        .scalar_subquery(),
        state=after(EffectEvent.PROPOSE),
        execution_id="",
        effect_key="",
        status="",
        error_code="",
        output=sa.null(),
        size_chars=0,
        pointer="",
        created_us=sa.bindparam("now_us"),
        updated_us=sa.bindparam("now_us"),
    )
)
_COUNT = Update(sa.update(RUNS).where(RUNS.c.run_id == sa.bindparam("of_run")).values(tool_calls=RUNS.c.tool_calls + 1))
_SET = RowUpdate(TOOL_CALLS, "run_id", "tool_call_id")
_SET_OF_RUN = RowUpdate(TOOL_CALLS, "run_id")
_DENY = RowUpdate(TOOL_CALLS, "run_id", "state")
_AS_PROPOSED = (EffectState.PROPOSED, EffectState.DENIED)
"""States in which a row holds the hash of the arguments as they were proposed."""


class SqlLedger:
    """ports.Ledger of one run under its lease: every write proves the lease in its own transaction."""

    def __init__(
        self, database: Database, writes: TurnWrites, tools: ToolRegistry, *, keep_outputs: bool = True
    ) -> None:
        """Without keep_outputs nothing of a result is kept but its size; RiskGate's report holds its hash."""
        self._database, self._writes, self._lease = database, writes, writes.lease
        self._tools, self._keep_outputs = tools, keep_outputs

    async def find(self, tool_call_id: str) -> LedgerRow | None:
        """Return the row of this proposal, if there is one."""
        lease = self._lease

        def work(connection: Connection) -> LedgerRow | None:
            row = _select(connection, lease.run_id, tool_call_id)
            return None if row is None else _LEDGER_ROW.read(row)

        return await self._database.read_quickly(work, one=True)

    async def calls(self) -> Sequence[LedgerRow]:
        """Return every call of the run without its output, oldest first."""
        at = {"of_run": self._lease.run_id}

        def work(connection: Connection) -> Sequence[LedgerRow]:
            return [_LEDGER_ROW.read(row) for row in _CALLS.all(connection, at)]

        return await self._database.read_quickly(work, one=True)

    async def done_before(self) -> Collection[str]:
        """Return the tools that came to a success in other runs of the conversation."""
        at = {"of_thread": self._lease.thread_key, "of_run": self._lease.run_id}
        return await self._database.read_quickly(
            lambda connection: [row.tool for row in _DONE_BEFORE.all(connection, at)], one=True
        )

    async def has_read(self) -> bool:
        """Return True if a tool of the run was begun that may have answered something to remember."""
        at = {"of_run": self._lease.run_id}
        return await self._database.read_quickly(lambda connection: _READ.one(connection, at) is not None, one=True)

    async def propose(self, call: ProposedCall, *, plan_step: str) -> None:
        """Write the proposal; the same one again changes nothing.

        Raise RunCancelledError: nothing more is begun; IllegalTransitionError where the id names another call.
        """
        lease = self._lease

        def work(connection: Connection, now: int) -> bool:
            self._writes.require_wanted()
            there = _select(connection, lease.run_id, call.tool_call_id)
            if there is not None:
                _require_same(there, call)
                return False
            its = (call.tool_call_id, call.tool, plan_step, call.args_hash, call.content_hash)
            under = (lease.fence, lease.owner.tenant, lease.owner.user_id)
            given = zip(_GIVEN, (lease.run_id, *its, *under), strict=True)
            values = {f"its_{name}": value for name, value in given}
            _PROPOSE.later(connection, {**values, "of_run": lease.run_id, "now_us": now})
            _COUNT.later(connection, {"of_run": lease.run_id})
            return True

        if await self._writes.write(work):
            metrics.tool_call(call.tool, after(EffectEvent.PROPOSE), self._tools)

    async def deny(self, tool_call_id: str, *, error_code: str) -> None:
        """Write that it was blocked, rejected or expired."""
        await self._move(tool_call_id, EffectEvent.DENY, error_code=error_code[:_MAX_WORD])

    async def start(
        self,
        tool_call_id: str,
        *,
        execution_id: str,
        effect_key: str,
        bound: BoundCall,
        stakes: str = "",
        low_stakes: bool = False,
    ) -> None:
        """Commit that the effect is about to be redeemed and run; a started row keeps its own execution_id.

        What can be taken back, and what the person is to be told, is as durable as the effect itself. Raise
        RunCancelledError where the person wants nothing begun any more.
        """
        kept = (
            (undoing.KEPT if undoing.is_reversible(bound.tool, self._tools) else undoing.NONE)
            if stakes == "low" and bound.tool != UNDO_WRITE.name  # what an undo is, is known once it has a target
            else ""
        )
        await self._move(
            tool_call_id,
            EffectEvent.START,
            check=self._writes.require_wanted,
            again=lambda row: row.state == EffectState.STARTED and row.execution_id == execution_id,
            execution_id=execution_id,
            effect_key=effect_key,
            args_hash=bound.args_hash,
            turn_id=self._lease.turn_id,
            undo=kept,
            told=undoing.OWED if low_stakes else "",
        )

    async def finish(
        self,
        tool_call_id: str,
        *,
        arguments_json: str,
        status: Literal["success", "error"],
        output: str,
        error_code: str,
        low_stakes: bool = False,
        not_done: bool = False,
    ) -> None:
        """Commit the result, and queue the report to RiskGate and the result itself in the same transaction.

        not_done says of an error that the attempt certainly did nothing: it then uses up no ask of the person's.
        """
        result = Result(arguments_json, output, failed=status == "error")
        told: dict[str, Any] = {"told": undoing.OWED} if low_stakes else {}
        if status == "error":  # nothing happened, so there is nothing to tell, and nothing to take back
            told = {"told": "", "undo": ""}
        await self._move(
            tool_call_id,
            EffectEvent.FINISH,
            again=lambda row: row.state == EffectState.FINISHED,
            outcome="SUCCEEDED" if status == "success" else "FAILED",
            result=result,
            not_done=not_done,
            status=status,
            output=to_bytes(output) if self._keep_outputs else None,
            size_chars=len(output),
            output_hash=sha256(to_bytes(output)),
            error_code=error_code[:_MAX_WORD],
            **told,
        )

    async def doubt(self, tool_call_id: str, *, error_code: str) -> None:
        """Commit that the outcome of an effect is unknown, and queue the report."""
        await self._move(
            tool_call_id,
            EffectEvent.DOUBT,
            again=lambda row: row.state == EffectState.IN_DOUBT,
            outcome="IN_DOUBT",
            error_code=error_code[:_MAX_WORD],
        )

    async def evicted(self, tool_call_id: str, *, pointer: str, size_chars: int) -> None:
        """Note that memory keeps the output now, and drop the ledger's own copy."""
        await self._move(
            tool_call_id,
            EffectEvent.EVICT,
            status="evicted",
            output=None,
            pointer=pointer,
            size_chars=size_chars,
        )

    async def check_fence(self) -> bool:
        """Return whether the person still wants the run. Raise LeaseLostError unless this process still holds it."""
        return await self._writes.write(lambda _connection, _now: not self._writes.cancelled)

    def _taken_back(self, connection: Connection, row: Record, *, ended: bool) -> dict[str, Any]:
        """Return what an undo took back, for its report."""
        if row.tool != UNDO_WRITE.name:
            return {}
        told = undoing.taken_back(connection, self._lease, row.effect_key, ended=ended)
        return {"reversals": told} if told else {}

    async def _move(
        self,
        tool_call_id: str,
        event: EffectEvent,
        *,
        again: Callable[[Record], bool] = lambda _row: False,
        check: Callable[[], None] = lambda: None,
        outcome: str = "",
        result: Result | None = None,
        not_done: bool = False,
        **values: Any,
    ) -> None:
        lease, to = self._lease, after(event)

        def work(connection: Connection, now: int) -> str:
            row = _select(connection, lease.run_id, tool_call_id)
            if row is not None and again(row):
                return ""
            advance(None if row is None else EffectState(row.state), event, of=f"tool call {tool_call_id}")
            assert row is not None, "only a proposal begins a row"
            check()
            _SET.later(connection, lease.run_id, tool_call_id, state=to, fence=lease.fence, updated_us=now, **values)
            if outcome:
                told = values if result is None else {**values, "output": to_bytes(result.output)}
                back = self._taken_back(connection, row, ended=outcome != "IN_DOUBT")
                back |= {"not_done": True} if not_done else {}
                queue_outcome(connection, lease, _report(row.execution_id, outcome, told) | back, now_us=now)
            if result is not None and (task_id := task_of(connection, lease.run_id)):
                spec = self._tools.get(row.tool)
                shown = observation(task_id, lease.run_id, row.tool, tool_call_id, result, spec=spec)
                queue_observation(connection, lease, shown, now_us=now)
            return "" if row.state == to else str(row.tool)

        if moved := await self._writes.write(work):
            metrics.tool_call(moved, to, self._tools)


def _require_same(row: Record, call: ProposedCall) -> None:
    """Raise IllegalTransitionError where a row is about another call: the one would be run under the other's name.

    Once a call has started its row holds the hash of the bound arguments, which may be others than those proposed.
    """
    same_args = row.args_hash == call.args_hash or row.state not in _AS_PROPOSED
    if row.tool != call.tool or not same_args:
        raise IllegalTransitionError(f"tool call {call.tool_call_id} is {row.state} as another call; it stays that one")


def close_open_effects(connection: Connection, lease: Lease, now: int) -> None:
    """Mark in doubt what an ending run started and never finished: a fault of ours must not lose an effect."""
    for row in _STARTED.all(connection, {"of_run": lease.run_id}):
        values = {"error_code": RUN_ENDED}
        doubted = {
            "state": advance(EffectState(row.state), EffectEvent.DOUBT),
            "fence": lease.fence,
            "updated_us": now,
            **values,
        }
        _SET.later(connection, lease.run_id, row.tool_call_id, **doubted)
        told = undoing.taken_back(connection, lease, row.effect_key, ended=False) if row.tool == UNDO_WRITE.name else []
        report = _report(row.execution_id, "IN_DOUBT", values) | ({"reversals": told} if told else {})
        queue_outcome(connection, lease, report, now_us=now)


def forget_outputs(connection: Connection, run_id: str) -> None:
    """Drop the outputs of a run that has ended: no resume asks for them any more. Hash, size and pointer stay.

    What RiskGate is still to be told of them is in the outbox, with a copy of its own.
    """
    _SET_OF_RUN.later(connection, run_id, output=None)


def deny_proposals(connection: Connection, lease: Lease, error_code: str, now: int) -> int:
    """Deny the undecided proposals of an ending run, and return their number."""
    proposed = EffectState.PROPOSED
    denied = advance(proposed, EffectEvent.DENY)
    values = {"state": denied, "error_code": error_code, "fence": lease.fence, "updated_us": now}
    return _DENY.run(connection, lease.run_id, proposed, **values)


def _report(execution_id: str, outcome: str, values: dict[str, Any]) -> dict[str, Any]:
    output = values.get("output")
    return {
        "execution_id": execution_id,
        "outcome": outcome,
        "result_hash": "" if output is None else sha256(output),
        "result_size": values.get("size_chars", 0),
        "error_code": values.get("error_code", ""),
    }


def _select(connection: Connection, run_id: str, tool_call_id: str) -> Record | None:
    return _ROW.one(connection, {"of_run": run_id, "of_call": tool_call_id})
