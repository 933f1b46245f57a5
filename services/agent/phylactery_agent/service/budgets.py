"""What of its budgets a run has used, as it is shown. The guards themselves are the graphs' and the runtime's."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery.agent.v1 import run_pb2

from phylactery_agent.graph.guards import MAX_SUPERSTEPS, MAX_TOOL_CALLS
from phylactery_agent.runtime.model import StoredRun


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """At how much a run stops; 0 is no limit."""

    supersteps: int = MAX_SUPERSTEPS
    tool_calls: int = MAX_TOOL_CALLS
    model_calls: int = 0
    tokens: int = 0
    cost_micros: int = 0
    active_us: int = 0


def budget_message(run: StoredRun, limits: BudgetLimits) -> run_pb2.RunBudget:
    """Answers what a run has used beside what it may."""
    return run_pb2.RunBudget(
        supersteps=run_pb2.BudgetUse(used=run.supersteps, limit=limits.supersteps),
        tool_calls=run_pb2.BudgetUse(used=run.tool_calls, limit=limits.tool_calls),
        model_calls=run_pb2.BudgetUse(used=run.model_calls, limit=limits.model_calls),
        tokens=run_pb2.BudgetUse(used=run.tokens, limit=limits.tokens),
        cost_micros=run_pb2.BudgetUse(used=run.cost_micros, limit=limits.cost_micros),
        active_us=run_pb2.BudgetUse(used=run.active_us, limit=limits.active_us),
    )
