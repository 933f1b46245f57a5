"""Composition root of the agent service."""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from phylactery_chassis.db.database import Database
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.server import Service
from phylactery_chassis.util.clock import Clock, MonotoneClock, SystemClock

from phylactery_agent.api.chat import ChatEdge, ChatServicer
from phylactery_agent.connections import open_database, open_outside
from phylactery_agent.edges import make_edges
from phylactery_agent.graph.core.registry import GRAPH_NAMES
from phylactery_agent.llm_client.factory import open_models, tell_models
from phylactery_agent.parts import make_privacy, make_runner, make_shared, make_turns
from phylactery_agent.ports.services import Services
from phylactery_agent.runtime.approvals.watcher import ApprovalWatcher
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.dispatch.replicas import Replicas
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.privacy.erase_user import Privacy
from phylactery_agent.runtime.privacy.erasure_store import Erasure
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.runtime.reminders.scheduler import ReminderScheduler
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.catalog_sync import CatalogCheck
from phylactery_agent.tools.executor import Executor

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models
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
from phylactery_chassis.rpc.server import Registration, registration

from phylactery_agent.api.graphs import GraphServicer
from phylactery_agent.api.privacy import PrivacyServicer
from phylactery_agent.api.runs import RunServicer
from phylactery_agent.api.tools import ToolServicer
from phylactery_agent.edges import Edges


def registrations(edges: Edges, privacy: Privacy) -> list[Registration]:
    """Return the registrations of the agent's five gRPC services."""
    return [
        registration(
            chat_pb2.DESCRIPTOR,
            "ChatService",
            chat_pb2_grpc.add_ChatServiceServicer_to_server,
            ChatServicer(edges.chat, edges.threads),
        ),
        registration(
            run_pb2.DESCRIPTOR, "RunService", run_pb2_grpc.add_RunServiceServicer_to_server, RunServicer(edges.runs)
        ),
        registration(
            graph_pb2.DESCRIPTOR,
            "GraphService",
            graph_pb2_grpc.add_GraphServiceServicer_to_server,
            GraphServicer(edges.graphs),
        ),
        registration(
            privacy_pb2.DESCRIPTOR,
            "PrivacyService",
            privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
            PrivacyServicer(privacy),
        ),
        registration(
            tool_pb2.DESCRIPTOR,
            "ToolService",
            tool_pb2_grpc.add_ToolServiceServicer_to_server,
            ToolServicer(edges.tools),
        ),
    ]


@dataclass(frozen=True, slots=True)
class Agent:
    """A complete agent: its gRPC service, and the parts that tests access."""

    service: Service
    database: Database
    runner: Dispatcher
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
    news: ThreadNotifier
    firing: ReminderScheduler


async def build(settings: AgentSettings) -> Service:
    """Build an agent and return its service. Raise StartError."""
    return (await build_agent(settings)).service


async def build_agent(settings: AgentSettings, clock: Clock | None = None) -> Agent:
    """Build an agent on its data folder.

    Raise StartError if the folder is taken, a key is unusable, or a tool module cannot be loaded.
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
            lambda: agent.replicas.start(agent.runner, agent.news),
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
    """Assemble the parts; the stack closes what has to be closed, in reverse order of opening."""
    models = open_models(settings, clock)
    if models is not None:
        stack.push_async_callback(models.close)
    outside = open_outside(settings, stack)
    erasure_log = ErasureLog(settings.erasure_log or settings.data_dir / "erasures.jsonl", Erasure, "AGENT_ERASURE_LOG")
    database = await open_database(settings, outside, stack)
    shared = make_shared(settings, clock, database, outside, models)
    runner = make_runner(shared, make_turns(shared))
    stack.push_async_callback(shared.replicas.stop)
    catalog = CatalogCheck(outside.services.catalog, clock, poll_seconds=settings.catalog_poll_seconds)
    stack.callback(catalog.forget)
    edges, privacy = make_edges(shared, runner, catalog), make_privacy(shared, runner, erasure_log)
    return Agent(
        service=Service("agent", registrations(edges, privacy), healthy=database.probe, on_drain=[edges.threads.end]),
        database=database,
        runner=runner,
        watcher=ApprovalWatcher(
            shared.runs,
            shared.inbox,
            outside.services,
            runner.wake,
            shared.named_leases,
            interval_seconds=settings.approval_poll_seconds,
        ),
        delivery=shared.delivery,
        services=outside.services,
        edge=edges.chat,
        privacy=privacy,
        retention=Retention(database, clock, days=settings.event_days),
        catalog=catalog,
        executor=outside.executor,
        models=models,
        replicas=shared.replicas,
        news=shared.news,
        firing=shared.firing,
    )


async def _start_background(agent: Agent, settings: AgentSettings, closing: contextlib.AsyncExitStack) -> None:
    """Start the background jobs, the approval watcher only if enabled; on close they are cancelled first."""
    jobs = [agent.delivery.run(), agent.privacy.run(), agent.retention.run(), agent.catalog.run(), agent.firing.run()]
    if settings.approval_poll_seconds:
        jobs.append(agent.watcher.run())
    for job in jobs:
        closing.push_async_callback(_cancel, asyncio.create_task(job))


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
