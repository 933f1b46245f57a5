"""Puts the agent together."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
    tool_pb2,
    tool_pb2_grpc,
)
from phylactery_chassis.channel import open_channel
from phylactery_chassis.clock import MICROSECONDS, Clock, MonotoneClock, SystemClock
from phylactery_chassis.database import Database
from phylactery_chassis.erasure_log import ErasureLog
from phylactery_chassis.errors import StartError
from phylactery_chassis.server import Registration, Service

from phylactery_agent.adapters.connections import GrpcServices
from phylactery_agent.executor import Executor, ToolSettings
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.graph.registry import GRAPH_NAMES, Graphs
from phylactery_agent.models.opening import open_models, tell_models
from phylactery_agent.runtime.approvals import ApprovalWatcher
from phylactery_agent.runtime.cancelling import Cancellations
from phylactery_agent.runtime.catalog import CatalogCheck
from phylactery_agent.runtime.claiming import ClaimStore
from phylactery_agent.runtime.deleting import Deletions, DeletionStore, DeletionTools
from phylactery_agent.runtime.delivery import Delivery
from phylactery_agent.runtime.duties import Duties
from phylactery_agent.runtime.erasures import Erasure, ErasureStore
from phylactery_agent.runtime.events import EventLog
from phylactery_agent.runtime.firing import Firing
from phylactery_agent.runtime.folder_lock import FolderLock, FolderTakenError
from phylactery_agent.runtime.inbox import InboxStore
from phylactery_agent.runtime.lease import Leases, free_leases
from phylactery_agent.runtime.marks import require_same_folder
from phylactery_agent.runtime.metrics import watch
from phylactery_agent.runtime.model_runs import RunModels
from phylactery_agent.runtime.outbox import OutboxStore
from phylactery_agent.runtime.privacy import Privacy, PrivacyTools
from phylactery_agent.runtime.replicas import LOOK_SECONDS, Replicas
from phylactery_agent.runtime.resolving import Resolutions
from phylactery_agent.runtime.retention import Retention
from phylactery_agent.runtime.retrying import Retries
from phylactery_agent.runtime.run_lists import RunLists
from phylactery_agent.runtime.runner import Runner
from phylactery_agent.runtime.runs import RunStore
from phylactery_agent.runtime.sanitizing import Sanitizing
from phylactery_agent.runtime.schedules import Reminding
from phylactery_agent.runtime.seal import Sealer, SealError
from phylactery_agent.runtime.services import Services
from phylactery_agent.runtime.signals import ThreadNews
from phylactery_agent.runtime.threads import ThreadStore
from phylactery_agent.runtime.turns import TurnServer, TurnTools
from phylactery_agent.saver.saver import Checkpoints
from phylactery_agent.service.budgets import BudgetLimits
from phylactery_agent.service.chat import ChatEdge, EdgeTools
from phylactery_agent.service.graphs import GraphEdge
from phylactery_agent.service.runs import RunEdge, RunTools
from phylactery_agent.service.servicers import (
    ChatServicer,
    GraphServicer,
    PrivacyServicer,
    RunServicer,
    ToolServicer,
)
from phylactery_agent.service.showing import Showing
from phylactery_agent.service.threads import ThreadEdge, ThreadTools
from phylactery_agent.service.tools import ToolEdge
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.mcp.config import McpConfigError, McpTools, load_config
from phylactery_agent.tools.mcp.pins import Pins, PinsError, load_pins
from phylactery_agent.tools.registry import ToolRegistrationError

if TYPE_CHECKING:
    from phylactery_agent.models.asking import Models

PACKAGE = "phylactery_agent"
_FORMER_STATES = ("checkpoints.db", "checkpoints.db-wal", "checkpoints.db-shm")
_CHAT = chat_pb2.DESCRIPTOR.services_by_name["ChatService"].full_name
_GRAPH = graph_pb2.DESCRIPTOR.services_by_name["GraphService"].full_name
_PRIVACY = privacy_pb2.DESCRIPTOR.services_by_name["PrivacyService"].full_name
_RUN = run_pb2.DESCRIPTOR.services_by_name["RunService"].full_name
_TOOL = tool_pb2.DESCRIPTOR.services_by_name["ToolService"].full_name


@dataclass(frozen=True, slots=True)
class Agent:
    """A whole agent: what is served, and the parts a test reaches into."""

    service: Service
    database: Database
    runner: Runner
    watcher: ApprovalWatcher
    delivery: Delivery
    services: Services
    edge: ChatEdge
    privacy: Privacy
    retention: Retention
    catalog: CatalogCheck
    executor: Executor
    models: Models | None
    replicas: Replicas
    firing: Firing


async def build(settings: AgentSettings) -> Service:
    """Builds an agent and answers what is served. Raises StartError."""
    return (await build_agent(settings)).service


async def build_agent(settings: AgentSettings, clock: Clock | None = None) -> Agent:
    """Builds an agent on its data folder.

    Raises StartError when the folder is taken, a key is unusable or a tool module is none.
    """
    settings.prepare()
    if settings.graph not in GRAPH_NAMES:
        raise StartError(f"AGENT_GRAPH: there is no graph '{settings.graph}'; there are {', '.join(GRAPH_NAMES)}")
    async with contextlib.AsyncExitStack() as stack:
        agent = await _assemble(settings, clock or MonotoneClock(SystemClock()), stack)
        closing = stack.pop_all()
    closing.push_async_callback(agent.runner.stop)
    service = replace(
        agent.service,
        on_start=[
            lambda: tell_models(agent.models),
            agent.replicas.start,
            agent.privacy.replay,
            agent.executor.begin,
            agent.catalog.first_look,
            agent.runner.start,
            lambda: _start_background(agent, settings, closing),
        ],
        on_stop=[closing.aclose],
    )
    return replace(agent, service=service)


async def _assemble(settings: AgentSettings, clock: Clock, stack: contextlib.AsyncExitStack) -> Agent:
    models = open_models(settings, clock)
    if models is not None:
        stack.push_async_callback(models.close)
    try:
        shared = settings.shared
        folder = FolderLock(settings.data_dir, shared=shared)
        stack.callback(folder.release)
        sealer = Sealer.from_folder(settings.data_dir)
        services = _connect(settings)
        stack.push_async_callback(services.close)
        executor = Executor(
            ToolSettings(
                sandbox=settings.sandbox,
                journal=settings.data_dir / "journal",
                plugins=tuple(settings.tool_modules),
                web=settings.web(),
                mail=settings.mail(),
                mcp=_mcp_tools(settings),
            )
        )
    except (McpConfigError, PinsError) as error:
        raise StartError(f"AGENT_MCP_SERVERS: {error}") from None
    except (ToolRegistrationError, ImportError) as error:
        raise StartError(f"AGENT_TOOL_MODULES: {error}") from error
    except (FolderTakenError, SealError, ValueError) as error:
        raise StartError(str(error)) from error
    except OSError as error:
        why = f"{error.filename} cannot be used ({error.strerror})"
        raise StartError(f"{why}; name folders that can be written in AGENT_DATA_DIR and AGENT_SANDBOX_DIR") from None
    stack.push_async_callback(executor.end)
    erasure_log = ErasureLog(settings.erasure_log or settings.data_dir / "erasures.jsonl", Erasure, "AGENT_ERASURE_LOG")
    _remove_former_states(settings.data_dir)
    database = Database(settings.url)
    stack.callback(database.close)
    stack.callback(watch(database))
    await asyncio.to_thread(database.migrate, PACKAGE, apply=database.dialect == "sqlite")
    await asyncio.to_thread(require_same_folder, database, settings.data_dir, sealer)
    await asyncio.to_thread(folder.bury, partial(free_leases, database))
    saver = Checkpoints(database, keep_writes=False)  # no node of the graph runs beside another
    inbox, runs, news = InboxStore(database, clock), RunStore(database, clock), ThreadNews()
    holder, look_seconds = folder.holder, LOOK_SECONDS if shared else None
    duties = Duties(database, clock, holder, seconds=settings.lease_seconds)
    delivery = Delivery(
        OutboxStore(database, clock),
        services,
        duties,
        retry_seconds=settings.retry_seconds,
        look_seconds=look_seconds,
    )
    firing = Firing(database, clock, news, delivery, poll_seconds=settings.reminder_poll_seconds)
    sanitizing = Sanitizing(services, sealer)
    turns = TurnServer(
        TurnTools(
            database=database,
            clock=clock,
            runs=runs,
            leases=Leases(database, clock, seconds=settings.lease_seconds),
            services=services,
            delivery=delivery,
            news=news,
            sealer=sealer,
            sanitizing=sanitizing,
            graphs=Graphs(saver, _react_options(settings)),
            executor=executor,
            evict_over_chars=settings.evict_over_chars,
            active_seconds=settings.active_seconds,
            models=RunModels(models, database, clock) if models is not None else None,
            reminding=Reminding(database, clock, settings.time_zone, settings.reminders_per_user, firing.wake),
        )
    )
    runner = Runner(
        inbox,
        ClaimStore(database, clock, lease_seconds=settings.lease_seconds),
        turns.serve,
        duties,
        holder=holder,
        max_concurrent=settings.max_concurrent_turns,
        retry_seconds=settings.retry_seconds,
        shared=shared,
    )
    replicas = Replicas(settings.url, holder, runner=runner, news=news, duties=duties)
    stack.push_async_callback(replicas.stop)
    threads, log = ThreadStore(database), EventLog(database)
    showing = Showing(services, log, runs)
    thread_edge = ThreadEdge(
        ThreadTools(
            threads=threads,
            runs=runs,
            log=log,
            news=news,
            showing=showing,
            deletions=Deletions(
                DeletionTools(
                    store=DeletionStore(database, clock),
                    runner=runner,
                    delivery=delivery,
                    news=news,
                    forget_effects=executor.forget,
                )
            ),
        )
    )
    edge = ChatEdge(
        EdgeTools(
            inbox=inbox,
            runs=runs,
            threads=threads,
            log=log,
            news=news,
            delivery=delivery,
            services=services,
            showing=showing,
            sealer=sealer,
            sanitizing=sanitizing,
            wake=runner.wake,
            graphs=GRAPH_NAMES,
            default_graph=settings.graph,
        )
    )
    run_edge = RunEdge(
        RunTools(
            runs=runs,
            lists=RunLists(database),
            cancellations=Cancellations(database, clock),
            resolutions=Resolutions(database, clock),
            retries=Retries(database, clock),
            news=news,
            delivery=delivery,
            wake=runner.wake,
            limits=_limits(settings, models),
        )
    )
    privacy = Privacy(
        PrivacyTools(
            store=ErasureStore(database, clock),
            log=erasure_log,
            clock=clock,
            runner=runner,
            inbox=inbox,
            delivery=delivery,
            services=services,
            news=news,
            forget_effects=executor.forget,
            retry_seconds=settings.retry_seconds,
            duties=duties,
            look_seconds=look_seconds,
        )
    )
    catalog = CatalogCheck(services.catalog, clock, poll_seconds=settings.catalog_poll_seconds)
    stack.callback(catalog.forget)
    graphs = GraphEdge(settings.graph)
    return Agent(
        service=Service(
            "agent",
            _registrations(ChatServicer(edge, thread_edge), run_edge, graphs, privacy, catalog),
            healthy=database.probe,
            on_drain=[thread_edge.end],
        ),
        database=database,
        runner=runner,
        watcher=ApprovalWatcher(
            runs, inbox, services, runner.wake, duties, interval_seconds=settings.approval_poll_seconds
        ),
        delivery=delivery,
        services=services,
        edge=edge,
        privacy=privacy,
        retention=Retention(database, clock, days=settings.event_days),
        catalog=catalog,
        executor=executor,
        models=models,
        replicas=replicas,
        firing=firing,
    )


def _remove_former_states(folder: Path) -> None:
    """Removes the file in which the state of runs lay before the database held it: it has words of users in it."""
    for name in _FORMER_STATES:
        with contextlib.suppress(FileNotFoundError):
            (folder / name).unlink()


def _mcp_tools(settings: AgentSettings) -> McpTools:
    config = load_config(settings.mcp_servers)
    return McpTools(config, load_pins(settings.mcp_pin_file) if config.servers else Pins())


def _react_options(settings: AgentSettings) -> ReactOptions:
    return ReactOptions(
        max_steps=settings.react_max_steps, tool_rounds=settings.react_tool_rounds, llm_fallback=settings.llm_fallback
    )


def _limits(settings: AgentSettings, models: Models | None) -> BudgetLimits:
    """Answers at how much a run stops."""
    limits = BudgetLimits(active_us=round(settings.active_seconds * MICROSECONDS))
    if models is None:
        return limits
    of_models = models.config.limits
    return replace(limits, model_calls=of_models.calls, tokens=of_models.tokens, cost_micros=of_models.cost_micros)


def _connect(settings: AgentSettings) -> GrpcServices:
    """Opens the channels; a service that is away is noticed by the first call, not here."""
    return GrpcServices(
        open_channel(settings.riskgate_target, token=settings.token_for_riskgate(), timeout=settings.call_seconds),
        open_channel(settings.memory_target, token=settings.token_for_memory(), timeout=settings.call_seconds),
    )


def _registrations(
    chat: ChatServicer, runs: RunEdge, graphs: GraphEdge, privacy: Privacy, catalog: CatalogCheck
) -> list[Registration]:
    return [
        Registration(_CHAT, lambda server: chat_pb2_grpc.add_ChatServiceServicer_to_server(chat, server)),
        Registration(_RUN, lambda server: run_pb2_grpc.add_RunServiceServicer_to_server(RunServicer(runs), server)),
        Registration(
            _GRAPH, lambda server: graph_pb2_grpc.add_GraphServiceServicer_to_server(GraphServicer(graphs), server)
        ),
        Registration(
            _PRIVACY,
            lambda server: privacy_pb2_grpc.add_PrivacyServiceServicer_to_server(PrivacyServicer(privacy), server),
        ),
        Registration(
            _TOOL,
            lambda server: tool_pb2_grpc.add_ToolServiceServicer_to_server(ToolServicer(ToolEdge(catalog)), server),
        ),
    ]


async def _start_background(agent: Agent, settings: AgentSettings, closing: contextlib.AsyncExitStack) -> None:
    """Starts delivery, erasing, retention and, unless switched off, the approval watcher; all end before the rest."""
    jobs = [agent.delivery.run(), agent.privacy.run(), agent.retention.run(), agent.catalog.run(), agent.firing.run()]
    if settings.approval_poll_seconds:
        jobs.append(agent.watcher.run())
    for job in jobs:
        closing.push_async_callback(_cancel, asyncio.create_task(job))


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
