"""Stored links from turns to RiskGate tasks, and the tool results that RiskGate is shown."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import sqlalchemy as sa
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.statements import Query, RowUpdate
from phylactery_chassis.inspection import Category, FindingKind, Wanted, inspect
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_agent.graph.llm.conversation import MAX_RESULT as MAX_SHOWN
from phylactery_agent.ports import EffectState
from phylactery_agent.runtime.dispatch.leases import require_lease
from phylactery_agent.runtime.effects.outbox import is_queued, queue_observation
from phylactery_agent.runtime.storage.records import Lease
from phylactery_agent.runtime.storage.schema import INBOX, TOOL_CALLS
from phylactery_agent.tools.contract import ToolSpec

MAX_RESULT_BYTES: Final = 1024 * 1024
"""Maximum size of a result that RiskGate accepts, in bytes."""
_CUT: Final = "\n[cut here: {left} of {all} bytes were not shown]"

_OF_RUN = Query(
    sa.select(INBOX.c.turn_id, INBOX.c.task_id)
    .where(INBOX.c.run_id == sa.bindparam("of_run"), INBOX.c.task_id != "")
    .order_by(INBOX.c.position)
)
_SET = RowUpdate(INBOX, "turn_id")
_BEGUN = Query(
    sa.select(TOOL_CALLS.c.state).where(
        TOOL_CALLS.c.run_id == sa.bindparam("of_run"),
        TOOL_CALLS.c.tool_call_id == sa.bindparam("of_call"),
        TOOL_CALLS.c.state != EffectState.PROPOSED,
    )
)


_SECRETS: Final = Wanted(frozenset(kind for kind in FindingKind if kind.category is Category.SECRET))


@dataclass(frozen=True, slots=True)
class OpenedTask:
    """A task, and the turn whose words opened it."""

    turn_id: str
    task_id: str


@dataclass(frozen=True, slots=True)
class Result:
    """What a call led to: its bound arguments, the tool's output, and whether it failed."""

    arguments_json: str = field(repr=False)
    output: str = field(repr=False)
    failed: bool


def observation(
    task_id: str, run_id: str, tool: str, tool_call_id: str, result: Result, *, spec: ToolSpec | None
) -> dict[str, Any]:
    """Return a result of a run in the form RiskGate is shown; without output it has no result_json or result_text.

    A result is partial if it is longer than what a model is shown of one, or has a secret, which is masked there. spec
    is the tool's, None where this process does not know the tool. A result that is too long is cut, notes that, and is
    sent as text whatever it was.
    """
    shown: dict[str, Any] = {
        "task_id": task_id,
        "run_id": run_id,
        "tool": tool,
        "tool_call_id": tool_call_id,
        "arguments_json": result.arguments_json,
        "failed": result.failed,
    }
    text = _bounded(result.output)
    if not text:
        return shown
    if len(text) > MAX_SHOWN or inspect(text, _SECRETS):
        shown["partial"] = True
    as_json = text is result.output and not result.failed and _answers_json(spec, text)
    return {**shown, "result_json" if as_json else "result_text": text}


def _bounded(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= MAX_RESULT_BYTES:
        return text
    room = MAX_RESULT_BYTES - len(_CUT.format(left=len(data), all=len(data)))
    kept = data[:room].decode("utf-8", "ignore")
    return kept + _CUT.format(left=len(data) - len(kept.encode()), all=len(data))


def _answers_json(spec: ToolSpec | None, text: str) -> bool:
    """Return True if a result is the JSON the tool's contract promises; what the text looks like is irrelevant."""
    if spec is None or spec.contract.answers != "json":
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def tasks_of(connection: Connection, run_id: str) -> Sequence[OpenedTask]:
    """Return the tasks of a run, oldest first."""
    return [OpenedTask(row.turn_id, row.task_id) for row in _OF_RUN.all(connection, {"of_run": run_id})]


def task_of(connection: Connection, run_id: str) -> str:
    """Return the current task of a run, or an empty string if it has none."""
    opened = tasks_of(connection, run_id)
    return opened[-1].task_id if opened else ""


class TaskStore:
    """Store for the tasks of runs."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock = database, clock

    async def of_run(self, run_id: str) -> Sequence[OpenedTask]:
        """Return the tasks of a run, oldest first."""
        return await self._database.read_quickly(lambda connection: tasks_of(connection, run_id), one=True)

    async def show_before(self, lease: Lease, tool_call_id: str, shown: Mapping[str, Any]) -> None:
        """Commit, once, what RiskGate must be shown before it first evaluates a call.

        Nothing is added if the call has already begun: what is found then may be its own effect. Raise LeaseLostError.
        """
        clock = self._clock

        def work(connection: Connection) -> None:
            now = clock.now_us()
            require_lease(connection, lease, now)
            begun = _BEGUN.one(connection, {"of_run": lease.run_id, "of_call": tool_call_id})
            if begun is None and not is_queued(connection, shown):
                queue_observation(connection, lease, shown, now_us=now)

        await self._database.write(work)
        reach("agent.looked")

    async def note(self, lease: Lease, task_id: str) -> None:
        """Commit that the words of the lease's turn opened a task. Raise LeaseLostError."""
        clock = self._clock

        def work(connection: Connection) -> None:
            require_lease(connection, lease, clock.now_us())
            _SET.later(connection, lease.turn_id, task_id=task_id)

        await self._database.write(work)
