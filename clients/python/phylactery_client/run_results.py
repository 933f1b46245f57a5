"""Results of calls about runs, in the style of results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A step of the plan; status is pending, running, done, failed or blocked."""

    step_id: str
    description: str
    status: str
    tries: int


@dataclass(frozen=True, slots=True)
class ToolCallRecord:
    """A row of the effects ledger; state is proposed, denied, started, finished or in_doubt."""

    tool_call_id: str
    tool: str
    state: str
    execution_id: str
    args_hash: str
    status: str
    size_chars: int
    pointer: str
    error_code: str
    run_id: str
    thread_id: str
    resolution: str
    create_time: datetime | None


@dataclass(frozen=True, slots=True)
class BudgetUse:
    """The use of one budget; limit 0 means unlimited."""

    used: int
    limit: int


@dataclass(frozen=True, slots=True)
class RunBudget:
    """The used budgets of a run."""

    supersteps: BudgetUse | None
    tool_calls: BudgetUse | None
    model_calls: BudgetUse | None
    tokens: BudgetUse | None
    cost_micros: BudgetUse | None
    active_us: BudgetUse | None


@dataclass(frozen=True, slots=True)
class Run:
    """An execution of a graph; status is QUEUED, RUNNING, SUSPENDED, DONE, FAILED or CANCELLED."""

    id: str
    thread_id: str
    graph: str
    status: str
    reason: str
    create_time: datetime | None
    update_time: datetime | None
    approval_id: str
    tool_calls: tuple[ToolCallRecord, ...]
    plan_steps: tuple[PlanStep, ...]
    trace_id: str
    pathway: str
    budget: RunBudget | None
    retry_of: str


@dataclass(frozen=True, slots=True)
class RunPage:
    """A page of a user's runs, newest first, without their tool calls and plan."""

    runs: tuple[Run, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class RunStep:
    """A node that the graph executed; next_nodes is empty if the turn ended there."""

    superstep: int
    position: int
    node: str
    start_time: datetime | None
    duration_us: int
    next_nodes: tuple[str, ...]
    tool_call_id: str
    finish_reason: str
    turn_id: str


@dataclass(frozen=True, slots=True)
class RunStepPage:
    """A page of the nodes a run executed, oldest first."""

    run_steps: tuple[RunStep, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class RetriedRun:
    """The new run of a retry, and the calls of earlier attempts that had, or may have had, an external effect."""

    run: Run
    effects: tuple[ToolCallRecord, ...]


@dataclass(frozen=True, slots=True)
class ToolCallPage:
    """A page of the ledger, newest first."""

    tool_calls: tuple[ToolCallRecord, ...]
    next_page_token: str
