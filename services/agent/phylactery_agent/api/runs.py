"""Run edge: what a person may see of runs, and the actions on them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import FailedPrecondition
from phylactery_chassis.telemetry import telemetry
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.api.chat import owner_of
from phylactery_agent.api.requests import (
    BudgetLimits,
    ResolveRequest,
    RetryRequest,
    RunsRequest,
    StepsRequest,
    ToolCallsRequest,
)
from phylactery_agent.api.views import ShownRun
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


@dataclass(frozen=True, slots=True)
class RunTools:
    """The dependencies of the edge."""

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


class RunEdge:
    """The implementation of RunService, without gRPC."""

    def __init__(self, tools: RunTools) -> None:
        self._t = tools

    @property
    def limits(self) -> BudgetLimits:
        """Return the limits at which a run stops."""
        return self._t.limits

    async def get(self, principal: Principal, run_id: str) -> ShownRun:
        """Return a run and its ledger. Raise NotFound RUN_NOT_FOUND."""
        run = await self._t.runs.get(owner_of(principal), run_id)
        return ShownRun(run, await self._t.runs.tool_calls(run_id))

    async def list(self, principal: Principal, request: RunsRequest) -> Page[StoredRun]:
        """Return a page of the caller's runs. Raise InvalidArgument."""
        return await self._t.lists.runs(
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
        run = await self._t.runs.get(owner, run_id)
        with self._t.news.listen(run.thread_key) as news:
            await self._t.cancellations.request(owner, run_id)
            while (run := await self._t.runs.get(owner, run_id)).status in ACTIVE:
                await news.wait()
                news.clear()
        self._t.news.tell(run.thread_key)
        self._t.delivery.wake()
        if run.status != RunStatus.CANCELLED:
            raise ended(run_id, run.status)
        return ShownRun(run, await self._t.runs.tool_calls(run_id))

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
            retried = await self._t.retries.retry(wanted)
        except FailedPrecondition as refusal:
            if refusal.metadata.get("why") != EFFECTS:
                raise
            await self._report_effects(wanted.owner, wanted.run_id)
            retried = await self._t.retries.retry(wanted)
        reach("agent.retry.committed")
        if retried.fresh:
            metrics.run_retried(retried.run.graph)
        self._t.wake(retried.run.thread_key)
        return retried

    async def _report_effects(self, owner: Owner, run_id: str) -> None:
        """Deliver a run's pending effect reports now, so that effects RiskGate never saw are known not to have run.

        If RiskGate is unavailable, nothing becomes known and nothing changes.
        """
        run = await self._t.runs.get(owner, run_id)
        with contextlib.suppress(GateUnavailableError, LeaseTakenError):
            await self._t.delivery.flush("outcome", run.thread_key, patient=False)

    async def steps(self, principal: Principal, request: StepsRequest) -> Page[StoredStep]:
        """Return a page of the nodes a run executed. Raise NotFound RUN_NOT_FOUND, InvalidArgument."""
        return await self._t.lists.steps(
            owner_of(principal), request.run_id, size=request.page_size or DEFAULT_STEPS, token=request.page_token
        )

    async def tool_calls(self, principal: Principal, request: ToolCallsRequest) -> Page[StoredToolCall]:
        """Return a page of the caller's ledger. Raise InvalidArgument."""
        return await self._t.lists.tool_calls(
            owner_of(principal),
            state=request.state,
            size=request.page_size or DEFAULT_LISTED,
            token=request.page_token,
        )

    async def resolve(self, principal: Principal, request: ResolveRequest) -> StoredToolCall:
        """Settle an effect in doubt. Raise NotFound, FailedPrecondition NOT_IN_DOUBT."""
        settled = await self._t.resolutions.resolve(
            owner_of(principal), request.run_id, request.tool_call_id, request.resolution
        )
        self._t.delivery.wake()
        return settled
