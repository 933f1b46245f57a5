"""The edges of an agent: what its gRPC servicers call, built from the parts that serve its turns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from phylactery_chassis.util.clock import MICROSECONDS

from phylactery_agent.api.chat import ChatEdge
from phylactery_agent.api.graphs import GraphEdge
from phylactery_agent.api.mapping import BudgetLimits
from phylactery_agent.api.runs import RunEdge
from phylactery_agent.api.showing import Showing
from phylactery_agent.api.threads import ThreadEdge
from phylactery_agent.api.tools import ToolEdge
from phylactery_agent.graph.core.registry import GRAPH_NAMES
from phylactery_agent.parts import Shared
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.privacy.delete_thread import Deletions, DeletionStore, DeletionTools
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.runs.queries import RunLists, ThreadStore
from phylactery_agent.runtime.runs.retry import Retries
from phylactery_agent.runtime.runs.unknown_outcomes import Resolutions
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.catalog_sync import CatalogCheck

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges of an agent, one for each servicer or half of one."""

    chat: ChatEdge
    threads: ThreadEdge
    runs: RunEdge
    graphs: GraphEdge
    tools: ToolEdge


def make_edges(shared: Shared, runner: Dispatcher, catalog: CatalogCheck) -> Edges:
    """Return the agent's edges."""
    threads, log = ThreadStore(shared.database), EventLog(shared.database)
    showing = Showing(shared.outside.services, log, shared.runs)
    return Edges(
        chat=_chat(shared, runner, threads, log, showing),
        threads=_threads(shared, runner, threads, log, showing),
        runs=_runs(shared, runner),
        graphs=GraphEdge(shared.settings.graph),
        tools=ToolEdge(catalog),
    )


def _chat(shared: Shared, runner: Dispatcher, threads: ThreadStore, log: EventLog, showing: Showing) -> ChatEdge:
    return ChatEdge(
        inbox=shared.inbox,
        runs=shared.runs,
        threads=threads,
        log=log,
        news=shared.news,
        delivery=shared.delivery,
        services=shared.outside.services,
        showing=showing,
        sealer=shared.outside.sealer,
        sanitizing=shared.sanitizing,
        accept=runner.accept,
        wake=runner.wake,
        graphs=GRAPH_NAMES,
        default_graph=shared.settings.graph,
    )


def _threads(shared: Shared, runner: Dispatcher, threads: ThreadStore, log: EventLog, showing: Showing) -> ThreadEdge:
    deletions = Deletions(
        DeletionTools(
            store=DeletionStore(shared.database, shared.clock),
            runner=runner,
            delivery=shared.delivery,
            news=shared.news,
            forget_effects=shared.outside.executor.forget,
        )
    )
    return ThreadEdge(
        threads=threads, runs=shared.runs, log=log, news=shared.news, showing=showing, deletions=deletions
    )


def _runs(shared: Shared, runner: Dispatcher) -> RunEdge:
    database, clock = shared.database, shared.clock
    return RunEdge(
        runs=shared.runs,
        lists=RunLists(database),
        cancellations=Cancellations(database, clock),
        resolutions=Resolutions(database, clock),
        retries=Retries(database, clock),
        news=shared.news,
        delivery=shared.delivery,
        wake=runner.wake,
        limits=_limits(shared.settings, shared.models),
    )


def _limits(settings: AgentSettings, models: Models | None) -> BudgetLimits:
    """Return the limits at which a run stops."""
    limits = BudgetLimits(active_us=round(settings.active_seconds * MICROSECONDS))
    if models is None:
        return limits
    of_models = models.config.limits
    return replace(limits, model_calls=of_models.calls, tokens=of_models.tokens, cost_micros=of_models.cost_micros)
