"""Validated request models of the edge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from phylactery.agent.v1 import run_pb2
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier, OptionalIdentifier
from pydantic import Field, StringConstraints

from phylactery_agent.graph.core.guards import MAX_SUPERSTEPS, MAX_TOOL_CALLS
from phylactery_agent.runtime.storage.records import StoredRun

MAX_TEXT = 20_000
DEFAULT_PAGE = 50


class ShownApproval(EdgeModel):
    """An approval as the caller was shown it."""

    approval_id: Identifier
    args_hash: Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]


class MessageRequest(EdgeModel):
    """SendMessage and StreamMessage."""

    request_id: LongIdentifier
    thread_id: OptionalIdentifier
    text: Annotated[str, StringConstraints(min_length=1, max_length=MAX_TEXT)]
    language: Literal["", "es", "en"]
    on_busy: Literal["", "enqueue", "reject", "interrupt", "coalesce"] = ""
    graph: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]{0,64}$")] = ""
    shown_approvals: Annotated[tuple[ShownApproval, ...], Field(max_length=20)] = ()


class ThreadRequest(EdgeModel):
    """GetThread."""

    thread_id: Identifier


class WatchRequest(EdgeModel):
    """WatchThread."""

    thread_id: Identifier
    after_sequence: Annotated[int, Field(ge=0)]


class ThreadsRequest(EdgeModel):
    """ListThreads."""

    page_size: Annotated[int, Field(ge=0, le=100)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class TranscriptRequest(EdgeModel):
    """ListMessages."""

    thread_id: Identifier
    page_size: Annotated[int, Field(ge=0, le=500)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class EraseUserRequest(EdgeModel):
    """EraseUser; an empty subject means the caller."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
    request_id: LongIdentifier


class ErasureRequest(EdgeModel):
    """GetErasure."""

    erasure_id: Identifier


class ToolsRequest(EdgeModel):
    """ListTools; an empty source means all."""

    enabled_only: bool
    source: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:-]{0,200}$")]


class RunRequest(EdgeModel):
    """GetRun and CancelRun."""

    run_id: Identifier


class RunsRequest(EdgeModel):
    """ListRuns; an empty status means all."""

    thread_id: OptionalIdentifier
    status: Literal["", "queued", "running", "suspended", "done", "failed", "dead", "cancelled"]
    page_size: Annotated[int, Field(ge=0, le=100)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class RetryRequest(EdgeModel):
    """RetryRun."""

    run_id: Identifier
    request_id: LongIdentifier
    acknowledge_effects: bool


class StepsRequest(EdgeModel):
    """ListRunSteps."""

    run_id: Identifier
    page_size: Annotated[int, Field(ge=0, le=500)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class ToolCallsRequest(EdgeModel):
    """ListToolCalls; an empty state means all."""

    state: Literal["", "proposed", "denied", "started", "finished", "in_doubt"]
    page_size: Annotated[int, Field(ge=0, le=100)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


class GraphRequest(EdgeModel):
    """GetGraph; an empty name means the default."""

    name: OptionalIdentifier


class ResolveRequest(EdgeModel):
    """ResolveInDoubt."""

    run_id: Identifier
    tool_call_id: Identifier
    resolution: Literal["happened", "did_not_happen"]


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
