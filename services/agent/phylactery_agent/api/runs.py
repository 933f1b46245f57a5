"""RunService: what a person may see of runs, and the actions on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Literal

from phylactery.agent.v1 import event_pb2, run_pb2, run_pb2_grpc
from phylactery_chassis.auth.identity import Principal, current_principal
from phylactery_chassis.errors import FailedPrecondition
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier, OptionalIdentifier, from_message
from phylactery_chassis.telemetry import telemetry
from phylactery_chassis.util.crashpoints import reach
from phylactery_chassis.util.timestamps import to_timestamp
from pydantic import Field, StringConstraints

from phylactery_agent.api.mapping import (
    BudgetLimits,
    Context,
    ShownRun,
    listed_run,
    owner_of,
    run_message,
    tool_call_message,
    word_of,
)
from phylactery_agent.ports import GateUnavailableError
from phylactery_agent.runtime.dispatch.named_leases import LeaseTakenError
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.runs.cancellation import Cancellations, ended
from phylactery_agent.runtime.runs.queries import RunLists
from phylactery_agent.runtime.runs.retry import EFFECTS, Retried, Retries
from phylactery_agent.runtime.runs.retry import RetryRequest as WantedRetry
from phylactery_agent.runtime.runs.status import ACTIVE, RunStatus
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.runs.unknown_outcomes import Resolutions
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.records import Owner, Page, StoredRun, StoredStep, StoredToolCall

DEFAULT_LISTED = 20
DEFAULT_STEPS = 100


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


class ResolveRequest(EdgeModel):
    """ResolveInDoubt."""

    run_id: Identifier
    tool_call_id: Identifier
    resolution: Literal["happened", "did_not_happen"]


@dataclass(eq=False)
class RunEdge:
    """The implementation of RunService, without gRPC."""

    runs: RunStore
    lists: RunLists
    cancellations: Cancellations
    resolutions: Resolutions
    retries: Retries
    news: ThreadNotifier
    delivery: Delivery
    wake: Callable[[str], None]
    """Signals that a thread has work."""
    limits: BudgetLimits

    async def get(self, principal: Principal, run_id: str) -> ShownRun:
        """Return a run and its ledger. Raise NotFound RUN_NOT_FOUND."""
        run = await self.runs.get(owner_of(principal), run_id)
        return ShownRun(run, await self.runs.tool_calls(run_id))

    async def list(self, principal: Principal, request: RunsRequest) -> Page[StoredRun]:
        """Return a page of the caller's runs. Raise InvalidArgument."""
        return await self.lists.runs(
            owner_of(principal),
            thread_id=request.thread_id,
            status=request.status,
            size=request.page_size or DEFAULT_LISTED,
            token=request.page_token,
        )

    async def cancel(self, principal: Principal, run_id: str) -> ShownRun:
        """Cancel a run and return it once it has ended.

        Raise NotFound RUN_NOT_FOUND, FailedPrecondition RUN_ENDED.
        """
        owner = owner_of(principal)
        run = await self.runs.get(owner, run_id)
        with self.news.listen(run.thread_key) as news:
            await self.cancellations.request(owner, run_id)
            while (run := await self.runs.get(owner, run_id)).status in ACTIVE:
                await news.wait()
                news.clear()
        self.news.tell(run.thread_key)
        self.delivery.wake()
        if run.status != RunStatus.CANCELLED:
            raise ended(run_id, run.status)
        return ShownRun(run, await self.runs.tool_calls(run_id))

    async def retry(self, principal: Principal, request: RetryRequest) -> Retried:
        """Retry a failed run as a new run. Raise NotFound, FailedPrecondition, AlreadyExists."""
        wanted = WantedRetry(
            owner=owner_of(principal),
            run_id=request.run_id,
            request_id=request.request_id,
            acknowledge_effects=request.acknowledge_effects,
            level=principal.level,
            credential_hash=principal.credential_hash,
            tools=principal.tools,
            traceparent=telemetry.inject().get("traceparent", ""),
        )
        try:
            retried = await self.retries.retry(wanted)
        except FailedPrecondition as refusal:
            if refusal.metadata.get("why") != EFFECTS:
                raise
            await self._report_effects(wanted.owner, wanted.run_id)
            retried = await self.retries.retry(wanted)
        reach("agent.retry.committed")
        if retried.fresh:
            metrics.run_retried(retried.run.graph)
        self.wake(retried.run.thread_key)
        return retried

    async def _report_effects(self, owner: Owner, run_id: str) -> None:
        """Deliver a run's pending effect reports now, so that effects RiskGate never saw are known not to have run.

        If RiskGate is unavailable, nothing becomes known and nothing changes.
        """
        run = await self.runs.get(owner, run_id)
        with contextlib.suppress(GateUnavailableError, LeaseTakenError):
            await self.delivery.flush("outcome", run.thread_key, patient=False)

    async def steps(self, principal: Principal, request: StepsRequest) -> Page[StoredStep]:
        """Return a page of the nodes a run executed. Raise NotFound RUN_NOT_FOUND, InvalidArgument."""
        return await self.lists.steps(
            owner_of(principal), request.run_id, size=request.page_size or DEFAULT_STEPS, token=request.page_token
        )

    async def tool_calls(self, principal: Principal, request: ToolCallsRequest) -> Page[StoredToolCall]:
        """Return a page of the caller's ledger. Raise InvalidArgument."""
        return await self.lists.tool_calls(
            owner_of(principal),
            state=request.state,
            size=request.page_size or DEFAULT_LISTED,
            token=request.page_token,
        )

    async def resolve(self, principal: Principal, request: ResolveRequest) -> StoredToolCall:
        """Settle an effect in doubt. Raise NotFound, FailedPrecondition NOT_IN_DOUBT."""
        settled = await self.resolutions.resolve(
            owner_of(principal), request.run_id, request.tool_call_id, request.resolution
        )
        self.delivery.wake()
        return settled


class RunServicer(run_pb2_grpc.RunServiceServicer):
    """phylactery.agent.v1.RunService."""

    def __init__(self, edge: RunEdge) -> None:
        self._edge, self._limits = edge, edge.limits

    async def GetRun(self, request: run_pb2.GetRunRequest, _context: Context) -> run_pb2.GetRunResponse:
        """Return a run."""
        return run_pb2.GetRunResponse(
            run=self._run(await self._edge.get(current_principal(), from_message(RunRequest, request).run_id))
        )

    async def ListRuns(self, request: run_pb2.ListRunsRequest, _context: Context) -> run_pb2.ListRunsResponse:
        """Return a page of runs."""
        page = await self._edge.list(
            current_principal(),
            from_message(RunsRequest, request, status=word_of(event_pb2.RunStatus, request.status, "RUN_STATUS_")),
        )
        return run_pb2.ListRunsResponse(
            runs=[listed_run(run, self._limits) for run in page.rows], next_page_token=page.next_page_token
        )

    async def CancelRun(self, request: run_pb2.CancelRunRequest, _context: Context) -> run_pb2.CancelRunResponse:
        """End a run permanently."""
        shown = await self._edge.cancel(current_principal(), from_message(RunRequest, request).run_id)
        return run_pb2.CancelRunResponse(run=self._run(shown))

    async def RetryRun(self, request: run_pb2.RetryRunRequest, _context: Context) -> run_pb2.RetryRunResponse:
        """Retry a failed run."""
        retried = await self._edge.retry(current_principal(), from_message(RetryRequest, request))
        return run_pb2.RetryRunResponse(
            run=listed_run(retried.run, self._limits),
            effects=[tool_call_message(call) for call in retried.effects],
        )

    async def ListRunSteps(
        self, request: run_pb2.ListRunStepsRequest, _context: Context
    ) -> run_pb2.ListRunStepsResponse:
        """Return a page of the nodes a run executed."""
        page = await self._edge.steps(current_principal(), from_message(StepsRequest, request))
        return run_pb2.ListRunStepsResponse(
            run_steps=[run_step_message(step) for step in page.rows], next_page_token=page.next_page_token
        )

    async def ListToolCalls(
        self, request: run_pb2.ListToolCallsRequest, _context: Context
    ) -> run_pb2.ListToolCallsResponse:
        """Return a page of the ledger."""
        page = await self._edge.tool_calls(current_principal(), from_message(ToolCallsRequest, request))
        return run_pb2.ListToolCallsResponse(
            tool_calls=[tool_call_message(call) for call in page.rows], next_page_token=page.next_page_token
        )

    async def ResolveInDoubt(
        self, request: run_pb2.ResolveInDoubtRequest, _context: Context
    ) -> run_pb2.ResolveInDoubtResponse:
        """Settle an effect in doubt."""
        settled = await self._edge.resolve(
            current_principal(),
            from_message(
                ResolveRequest, request, resolution=word_of(run_pb2.Resolution, request.resolution, "RESOLUTION_")
            ),
        )
        return run_pb2.ResolveInDoubtResponse(tool_call=tool_call_message(settled))

    def _run(self, shown: ShownRun) -> run_pb2.Run:
        return run_message(shown, self._limits)


def run_step_message(step: StoredStep) -> run_pb2.RunStep:
    """Return an executed node."""
    return run_pb2.RunStep(
        superstep=step.superstep,
        position=step.position,
        node=step.node,
        start_time=to_timestamp(step.started_us),
        duration_us=step.duration_us,
        next_nodes=step.next_nodes,
        tool_call_id=step.tool_call_id,
        finish_reason=step.finish_reason,
        turn_id=step.turn_id,
    )
