"""Messages that several services of the agent share: runs with their budgets, ledger rows, enum words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from grpc import aio
from phylactery.agent.v1 import event_pb2, run_pb2
from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.util.timestamps import to_timestamp

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS, MAX_TOOL_CALLS
from phylactery_agent.runtime.runs.status import RunStatus
from phylactery_agent.runtime.storage.records import Owner, StoredRun, StoredToolCall

Context = aio.ServicerContext[Any, Any]
_STATUS, _RESOLUTION, _NONE = "RUN_STATUS_", "RESOLUTION_", "unspecified"


def owner_of(principal: Principal) -> Owner:
    """Return the owner whose data a caller may access. Raise PermissionDenied without the role caller."""
    principal.require(Role.CALLER)
    return Owner(principal.tenant, principal.subject)


@dataclass(frozen=True, slots=True)
class ShownRun:
    """A run and its ledger."""

    run: StoredRun
    tool_calls: Sequence[StoredToolCall]


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits at which a run stops; 0 means no limit."""

    supersteps: int = MAX_SUPERSTEPS
    tool_calls: int = MAX_TOOL_CALLS
    model_calls: int = 0
    tokens: int = 0
    cost_micros: int = 0
    active_us: int = 0


def budget_message(run: StoredRun, limits: BudgetLimits) -> run_pb2.RunBudget:
    """Return a run's usage together with its limits."""
    return run_pb2.RunBudget(
        supersteps=run_pb2.BudgetUse(used=run.supersteps, limit=limits.supersteps),
        tool_calls=run_pb2.BudgetUse(used=run.tool_calls, limit=limits.tool_calls),
        model_calls=run_pb2.BudgetUse(used=run.model_calls, limit=limits.model_calls),
        tokens=run_pb2.BudgetUse(used=run.tokens, limit=limits.tokens),
        cost_micros=run_pb2.BudgetUse(used=run.cost_micros, limit=limits.cost_micros),
        active_us=run_pb2.BudgetUse(used=run.active_us, limit=limits.active_us),
    )


def run_message(shown: ShownRun, limits: BudgetLimits | None = None) -> run_pb2.Run:
    """Return a run with its steps and its ledger."""
    message = listed_run(shown.run, limits)
    message.tool_calls.extend(tool_call_message(call) for call in shown.tool_calls)
    message.plan_steps.extend(event_pb2.PlanStep(**_step(step)) for step in shown.run.steps)
    return message


def listed_run(run: StoredRun, limits: BudgetLimits | None = None) -> run_pb2.Run:
    """Return a run in list form, with its budget if the limits are given."""
    return run_pb2.Run(
        id=run.run_id,
        thread_id=run.thread_id,
        graph=run.graph,
        status=event_pb2.RunStatus.Value(f"{_STATUS}{run.status.upper()}"),
        reason=run.reason,
        create_time=to_timestamp(run.created_us),
        update_time=to_timestamp(run.updated_us),
        approval_id=run.approval_id if run.status == RunStatus.SUSPENDED else "",
        trace_id=run.trace_id,
        pathway=run.pathway,
        retry_of=run.retry_of,
        budget=None if limits is None else budget_message(run, limits),
    )


def tool_call_message(call: StoredToolCall) -> run_pb2.ToolCallRecord:
    """Return a row of the ledger."""
    return run_pb2.ToolCallRecord(
        tool_call_id=call.tool_call_id,
        tool=call.tool,
        state=call.state,
        execution_id=call.execution_id,
        args_hash=call.args_hash,
        status=call.status,
        size_chars=call.size_chars,
        pointer=call.pointer,
        error_code=call.error_code,
        run_id=call.run_id,
        thread_id=call.thread_id,
        resolution=run_pb2.Resolution.Value(f"{_RESOLUTION}{(call.resolution or _NONE).upper()}"),
        create_time=to_timestamp(call.created_us),
    )


def word_of(enum: Any, value: int, prefix: str) -> str:
    """Return an enum value's name in lower case, empty if unset; that of an unknown number is one nothing accepts."""
    if value not in enum.values():
        return str(value)
    word: str = enum.Name(value).removeprefix(prefix).lower()
    return "" if word == _NONE else word


def _step(step: Any) -> dict[str, Any]:
    return {name: step[name] for name in ("step_id", "description", "status", "tries")}
