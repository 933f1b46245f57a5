"""Composition root of the agent service: opens what is outside, builds every part in one order, starts the jobs."""

from __future__ import annotations

import asyncio
import contextlib
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from phylactery.agent.v1 import (
    chat_pb2,
    chat_pb2_grpc,
    escalation_pb2,
    escalation_pb2_grpc,
    form_pb2,
    form_pb2_grpc,
    graph_pb2,
    graph_pb2_grpc,
    guest_pb2,
    guest_pb2_grpc,
    privacy_pb2,
    privacy_pb2_grpc,
    run_pb2,
    run_pb2_grpc,
    tool_pb2,
    tool_pb2_grpc,
)
from phylactery_chassis.db.database import Database
from phylactery_chassis.db.dialect import dialect_named
from phylactery_chassis.db.sealed import seal_under
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.channel import open_channel
from phylactery_chassis.rpc.server import Service, registration
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, Clock, MonotoneClock, SystemClock
from sqlalchemy.engine import make_url

from phylactery_agent.adapters.connections import GrpcServices
from phylactery_agent.api.chat import ChatEdge, ChatServicer
from phylactery_agent.api.escalations import EscalationEdge, EscalationServicer
from phylactery_agent.api.files import FileEdge
from phylactery_agent.api.forms import FormEdge, FormServicer
from phylactery_agent.api.graphs import GraphEdge, GraphServicer
from phylactery_agent.api.guests import GuestEdge, GuestServicer
from phylactery_agent.api.mapping import BudgetLimits
from phylactery_agent.api.privacy import PrivacyServicer
from phylactery_agent.api.runs import RunEdge, RunServicer
from phylactery_agent.api.showing import Showing
from phylactery_agent.api.threads import ThreadEdge
from phylactery_agent.api.tools import ToolEdge, ToolServicer
from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_agent.graph.core.registry import GRAPH_NAMES, OPENING_GRAPHS, Graphs
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.llm_client.config import model_config
from phylactery_agent.llm_client.settings import ModelSettings
from phylactery_agent.media.endpoint import EndpointMedia, MediaEndpoint
from phylactery_agent.media.reading import MediaReader
from phylactery_agent.ports.services import Services
from phylactery_agent.rules.recognition.recognizer import model as recognition_model
from phylactery_agent.runtime.approvals.answers import ApprovalAnswers
from phylactery_agent.runtime.approvals.watcher import ApprovalWatcher
from phylactery_agent.runtime.dispatch.claims import ClaimStore
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.leases import Leases, free_leases
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.dispatch.process_registry import FolderLock, FolderTakenError
from phylactery_agent.runtime.dispatch.replicas import LOOK_SECONDS, Replicas
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.file_effects import move_former_files
from phylactery_agent.runtime.effects.file_previews import FilePreviews
from phylactery_agent.runtime.effects.outbox import OutboxStore
from phylactery_agent.runtime.effects.sent_files import SentFileStore
from phylactery_agent.runtime.forms import metrics as form_metrics
from phylactery_agent.runtime.forms.catalog import FormCatalog, FormIntake
from phylactery_agent.runtime.forms.serving import FormServing
from phylactery_agent.runtime.forms.sessions import ENDED, FormSessions
from phylactery_agent.runtime.forms.submissions import FormSubmissions
from phylactery_agent.runtime.guests.lifts import Lifts
from phylactery_agent.runtime.guests.shares import Limits, Shares
from phylactery_agent.runtime.handoff.expiry import HandoffExpiry
from phylactery_agent.runtime.handoff.lists import EscalationLists
from phylactery_agent.runtime.handoff.store import EscalationStore
from phylactery_agent.runtime.handoff.texts import empty_former
from phylactery_agent.runtime.intake.changes import ThreadChanges
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.intake.meanings import LikelyMeanings
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.privacy.delete_thread import Deletions, DeletionStore
from phylactery_agent.runtime.privacy.erase_user import Privacy
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureStore
from phylactery_agent.runtime.privacy.retention import Retention
from phylactery_agent.runtime.reminders.scheduler import ReminderScheduler
from phylactery_agent.runtime.reminders.store import Reminding
from phylactery_agent.runtime.runs.cancellation import Cancellations
from phylactery_agent.runtime.runs.queries import RunLists, ThreadStore
from phylactery_agent.runtime.runs.retry import Retries
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.runs.unknown_outcomes import Resolutions
from phylactery_agent.runtime.storage import metrics
from phylactery_agent.runtime.storage.clear_texts import seal_clear_texts
from phylactery_agent.runtime.storage.database_identity import require_same_folder
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.sealing import Sealer, SealError
from phylactery_agent.runtime.turn.model_session import RunModels
from phylactery_agent.runtime.turn.server import TurnServer
from phylactery_agent.settings import AgentSettings
from phylactery_agent.tools.catalog_sync import CatalogCheck
from phylactery_agent.tools.executor import Executor, ToolSettings
from phylactery_agent.tools.mcp.config import McpConfigError, McpTools, load_config
from phylactery_agent.tools.mcp.pins import Pins, PinsError, load_pins
from phylactery_agent.tools.registry import ToolRegistrationError, ToolRegistry

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models

PACKAGE = "phylactery_agent"
_log = get_logger("models")
_FORMER_STATES = ("checkpoints.db", "checkpoints.db-wal", "checkpoints.db-shm")


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
    tools: ToolRegistry
    models: Models | None
    firing: ReminderScheduler
    escalations: EscalationEdge
    handoff_expiry: HandoffExpiry


async def build(settings: AgentSettings) -> Service:
    """Build an agent and return its service. Raise StartError."""
    return (await build_agent(settings)).service


async def build_agent(settings: AgentSettings, clock: Clock | None = None) -> Agent:
    """Build an agent on its data folder.

    Raise StartError if the folder is taken, a key is unusable, or a tool module cannot be loaded.
    """
    settings.prepare()
    if settings.graph not in OPENING_GRAPHS:
        raise StartError(f"AGENT_GRAPH: there is no graph '{settings.graph}'; there are {', '.join(OPENING_GRAPHS)}")
    async with AsyncExitStack() as stack:
        agent = await _assemble(settings, clock or MonotoneClock(SystemClock()), stack)
        closing = stack.pop_all()
    closing.push_async_callback(agent.runner.stop)
    service = replace(
        agent.service,
        on_start=[*agent.service.on_start, lambda: _start_background(agent, settings, closing)],
        on_stop=[closing.aclose],
    )
    return replace(agent, service=service)


async def _assemble(settings: AgentSettings, clock: Clock, stack: AsyncExitStack) -> Agent:
    """Build the parts, each from those before it; the stack closes what has to be closed, in reverse order."""
    await asyncio.to_thread(recognition_model)  # built before the first message, not by it
    models = open_models(settings, clock)
    if models is not None:
        stack.push_async_callback(models.close)
    folder, sealer, services, tools, executor = _open_outside(settings, stack)
    erasure_log = ErasureLog(settings.erasure_log or settings.data_dir / "erasures.jsonl", Erasure, "AGENT_ERASURE_LOG")
    database = await _open_database(settings, folder, sealer, clock, stack)
    await seal_clear_texts(database, sealer)
    await move_former_files(executor, database)  # before anybody is served: a write goes on where its file is

    # the other processes over the same database
    holder, look_seconds = folder.holder, LOOK_SECONDS if settings.shared else None
    named_leases = NamedLeases(database, clock, holder, seconds=settings.lease_seconds)
    replicas = Replicas(settings.url, holder, shared=settings.shared, named_leases=named_leases)
    stack.push_async_callback(replicas.stop)
    news = ThreadNotifier(replicas.forward)

    # stores and jobs
    shares = _shares(settings)
    inbox = InboxStore(database, clock, shares)
    runs = RunStore(database, clock, tools, change_seconds=settings.change_seconds, shares=shares)
    delivery = Delivery(
        OutboxStore(database, clock),
        services,
        named_leases,
        retry_seconds=settings.retry_seconds,
        look_seconds=look_seconds,
    )
    firing = ReminderScheduler(database, clock, news, delivery, poll_seconds=settings.reminder_poll_seconds)
    sanitizing = Sanitizing(services, sealer)
    forms, sessions = FormCatalog.from_folder(settings.forms_dir), FormSessions(database, clock, sealer, shares)
    submissions = FormSubmissions(database, clock, sealer, forms)
    form_serving = FormServing(
        forms,
        sessions,
        tools,
        time_zone=settings.time_zone,
        region=settings.region,
        on_duty=settings.handoff == "on",
    )

    metrics.begin(GRAPH_NAMES, tools)
    form_metrics.begin((one.id for one in forms.all()), ENDED)

    # turns
    turns = TurnServer(
        database=database,
        clock=clock,
        runs=runs,
        leases=Leases(database, clock, seconds=settings.lease_seconds),
        services=services,
        delivery=delivery,
        news=news,
        sanitizing=sanitizing,
        graphs=Graphs(
            Checkpoints(database, keep_writes=False, cover=sealer),  # graph nodes never run in parallel
            ReactOptions(
                max_steps=settings.react_max_steps,
                tool_rounds=settings.react_tool_rounds,
                llm_fallback=settings.llm_fallback,
            ),
        ),
        forms=form_serving,
        submissions=submissions,
        executor=executor,
        tools=tools,
        evict_over_chars=settings.evict_over_chars,
        active_seconds=settings.active_seconds,
        models=RunModels(models, database, clock, shares) if models is not None else None,
        reminding=Reminding(database, clock, settings.time_zone, settings.reminders_per_user, firing.wake),
        changes=ThreadChanges(database, clock, tools, seconds=settings.change_seconds),
        meanings=LikelyMeanings(
            database,
            clock,
            tools,
            seconds=settings.change_seconds,
            forms=[(one.title["es"], one.title["en"]) for one in forms.all()],
        ),
        interpreter_seconds=settings.interpreter_seconds if settings.interpreter == "on" else 0.0,
        handoff=settings.handoff == "on",
        undo_days=settings.undo_days,
    )
    runner = Dispatcher(
        inbox,
        ClaimStore(database, clock, lease_seconds=settings.lease_seconds),
        turns.serve,
        named_leases,
        holder=holder,
        max_concurrent=settings.max_concurrent_turns,
        retry_seconds=settings.retry_seconds,
        shared=settings.shared,
        hydrating=None if settings.shared else turns.hydrating,
        on_return=turns.tell,
        on_overflow=replicas.offer_work,
        on_hold=replicas.hold,
    )
    watcher = ApprovalWatcher(
        runs,
        inbox,
        services,
        runner.wake,
        named_leases,
        interval_seconds=settings.approval_poll_seconds,
        held=runner.holds,
    )
    catalog = CatalogCheck(services.catalog, clock, tools, poll_seconds=settings.catalog_poll_seconds)
    privacy = Privacy(
        store=ErasureStore(database, clock),
        log=erasure_log,
        clock=clock,
        runner=runner,
        inbox=inbox,
        delivery=delivery,
        services=services,
        news=news,
        executor=executor,
        retry_seconds=settings.retry_seconds,
        named_leases=named_leases,
        look_seconds=look_seconds,
    )

    # what the gRPC services call
    threads, log = ThreadStore(database), EventLog(database)
    showing = Showing(services, log, runs, FilePreviews(database, executor))
    chat_edge = ChatEdge(
        inbox=inbox,
        runs=runs,
        threads=threads,
        log=log,
        news=news,
        delivery=delivery,
        services=services,
        showing=showing,
        answers=ApprovalAnswers(services, runs, tools),
        sealer=sealer,
        sanitizing=sanitizing,
        forms=FormIntake(forms, sessions, tools),
        tools=tools,
        accept=runner.accept,
        wake=runner.wake,
        graphs=OPENING_GRAPHS,
        default_graph=settings.graph,
    )
    deletions = Deletions(
        store=DeletionStore(database, clock, tools), runner=runner, delivery=delivery, news=news, executor=executor
    )
    thread_edge = ThreadEdge(threads=threads, runs=runs, log=log, news=news, showing=showing, deletions=deletions)
    run_edge = RunEdge(
        runs=runs,
        lists=RunLists(database),
        cancellations=Cancellations(database, clock, tools),
        resolutions=Resolutions(database, clock),
        retries=Retries(database, clock, tools),
        news=news,
        delivery=delivery,
        wake=runner.wake,
        limits=_limits(settings, models),
    )
    form_edge = FormEdge(
        catalog=forms,
        sessions=sessions,
        stored=submissions,
        serving=form_serving,
        clock=clock,
        opens_graph=settings.graph,
    )
    escalation_store = EscalationStore(
        database, clock, news, claim_seconds=settings.handoff_claim_seconds, wake=delivery.wake, shares=shares
    )
    escalation_edge = EscalationEdge(
        store=escalation_store,
        lists=EscalationLists(database),
        services=services,
        delivery=delivery,
        news=news,
        on_duty=settings.handoff == "on",
    )
    service = Service(
        "agent",
        [
            registration(
                form_pb2.DESCRIPTOR,
                "FormService",
                form_pb2_grpc.add_FormServiceServicer_to_server,
                FormServicer(form_edge),
            ),
            registration(
                chat_pb2.DESCRIPTOR,
                "ChatService",
                chat_pb2_grpc.add_ChatServiceServicer_to_server,
                ChatServicer(chat_edge, thread_edge, FileEdge(SentFileStore(database), executor)),
            ),
            registration(
                run_pb2.DESCRIPTOR, "RunService", run_pb2_grpc.add_RunServiceServicer_to_server, RunServicer(run_edge)
            ),
            registration(
                graph_pb2.DESCRIPTOR,
                "GraphService",
                graph_pb2_grpc.add_GraphServiceServicer_to_server,
                GraphServicer(GraphEdge(settings.graph)),
            ),
            registration(
                privacy_pb2.DESCRIPTOR,
                "PrivacyService",
                privacy_pb2_grpc.add_PrivacyServiceServicer_to_server,
                PrivacyServicer(privacy),
            ),
            registration(
                escalation_pb2.DESCRIPTOR,
                "EscalationService",
                escalation_pb2_grpc.add_EscalationServiceServicer_to_server,
                EscalationServicer(escalation_edge),
            ),
            registration(
                guest_pb2.DESCRIPTOR,
                "GuestService",
                guest_pb2_grpc.add_GuestServiceServicer_to_server,
                GuestServicer(GuestEdge(Lifts(database, clock), clock)),
            ),
            registration(
                tool_pb2.DESCRIPTOR,
                "ToolService",
                tool_pb2_grpc.add_ToolServiceServicer_to_server,
                ToolServicer(ToolEdge(catalog, tools)),
            ),
        ],
        healthy=database.probe,
        on_start=[
            lambda: _tell_models(models),
            lambda: replicas.start(runner, news),
            privacy.replay,
            executor.begin,
            catalog.first_look,
            runner.start,
        ],
        on_drain=[thread_edge.end, escalation_edge.end],
    )
    return Agent(
        service=service,
        database=database,
        runner=runner,
        watcher=watcher,
        delivery=delivery,
        services=services,
        edge=chat_edge,
        privacy=privacy,
        retention=Retention(
            database,
            clock,
            days=settings.event_days,
            repeat_days=settings.repeat_days,
            undo_days=settings.undo_days,
            forget_versions=executor.forget_versions,
        ),
        catalog=catalog,
        executor=executor,
        tools=tools,
        models=models,
        firing=firing,
        escalations=escalation_edge,
        handoff_expiry=HandoffExpiry(
            escalation_store,
            claim_seconds=settings.handoff_claim_seconds,
            wait_seconds=settings.handoff_wait_seconds,
        ),
    )


def _shares(settings: AgentSettings) -> Shares:
    """Return what each person may use of a day."""
    guest = Limits(
        settings.guest_turns_per_day,
        settings.guest_forms_per_day,
        settings.guest_escalations_per_day,
        settings.guest_tokens_per_day,
    )
    user = Limits(
        settings.user_turns_per_day,
        settings.user_forms_per_day,
        settings.user_escalations_per_day,
        settings.user_tokens_per_day,
    )
    return Shares(guest, user)


async def _start_background(agent: Agent, settings: AgentSettings, closing: AsyncExitStack) -> None:
    """Start the background jobs, the approval watcher only if enabled; on close they are cancelled first."""
    jobs = [agent.delivery.run(), agent.privacy.run(), agent.retention.run(), agent.catalog.run(), agent.firing.run()]
    jobs.append(agent.handoff_expiry.run())
    if settings.approval_poll_seconds:
        jobs.append(agent.watcher.run())
    for job in jobs:
        closing.push_async_callback(_cancel, asyncio.create_task(job))


async def _cancel(task: asyncio.Task[None]) -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


def open_models(settings: ModelSettings, clock: Clock) -> Models | None:
    """Return the models without connecting, or None for static mode. Raise StartError."""
    config = model_config(settings)
    if config is None:
        return None
    from phylactery_agent.llm_client.router import Models  # late: it takes a second to import

    return Models(config, clock=clock)


async def _tell_models(models: Models | None) -> None:
    """Log the configured models when the agent starts."""
    if models is None:
        _log.info(
            "static mode: files, reminders, memory and forms by fixed rules; PHYLACTERY_MODEL_BASE_URL adds a model"
        )
        return
    for place, endpoint in enumerate(models.config.endpoints):
        _log.info("fallback model" if place else "model", model=endpoint.model, endpoint=endpoint.base_url)


def _limits(settings: AgentSettings, models: Models | None) -> BudgetLimits:
    """Return the limits at which a run stops."""
    limits = BudgetLimits(active_us=round(settings.active_seconds * MICROSECONDS))
    if models is None:
        return limits
    of_models = models.config.limits
    return replace(limits, model_calls=of_models.calls, tokens=of_models.tokens, cost_micros=of_models.cost_micros)


def _media(settings: AgentSettings) -> MediaReader:
    """Return the reader of attachments, with the model endpoint for images and audio if it has models for them."""
    config = model_config(settings)
    if config is None or not (settings.vision_model or settings.transcription_model):
        return MediaReader(None)
    first = config.endpoints[0]
    endpoint = MediaEndpoint(
        base_url=first.base_url,
        api_key=first.api_key,
        vision_model=settings.vision_model,
        audio_model=settings.transcription_model,
        seconds=settings.media_seconds,
        on_loopback=first.on_loopback,
    )
    return MediaReader(EndpointMedia(endpoint))


def _open_outside(
    settings: AgentSettings, stack: AsyncExitStack
) -> tuple[FolderLock, Sealer, GrpcServices, ToolRegistry, Executor]:
    """Lock the data folder and open its key, the channels to the other services, and the tools; the stack closes them.

    Raise StartError if the folder is taken or not writable, its key is unusable, or a tool module cannot be loaded.
    """
    try:
        folder = FolderLock(settings.data_dir, shared=settings.shared)
        stack.callback(folder.release)
        sealer = Sealer.from_folder(settings.data_dir)
        services = GrpcServices(  # an unavailable service is noticed by the first call, not here
            open_channel(settings.riskgate_target, token=settings.token_for_riskgate(), timeout=settings.call_seconds),
            open_channel(settings.memory_target, token=settings.token_for_memory(), timeout=settings.call_seconds),
        )
        stack.push_async_callback(services.close)
        mcp = load_config(settings.mcp_servers)
        tools = ToolRegistry(settings.tool_modules)
        executor = Executor(
            ToolSettings(
                sandbox=settings.sandbox,
                shared=settings.sandbox_shared,
                journal=settings.data_dir / "journal",
                file_versions=settings.file_versions,
                file_version_bytes=settings.file_version_bytes,
                web=settings.web(),
                mail=settings.mail(),
                media=_media(settings),
                mcp=McpTools(mcp, load_pins(settings.mcp_pin_file) if mcp.servers else Pins()),
            ),
            tools,
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
    return folder, sealer, services, tools, executor


async def _open_database(
    settings: AgentSettings, folder: FolderLock, sealer: Sealer, clock: Clock, stack: AsyncExitStack
) -> Database:
    """Open the agent's database, migrated on SQLite and freed of dead agents' leases; the stack closes it.

    Raise StartError if it cannot be used, another agent uses it, its schema is not this version's, or it belongs to
    another folder.
    """
    _hold_database_file(settings.url, folder)
    for name in _FORMER_STATES:  # run states, which the database now holds: they contain users' words
        (settings.data_dir / name).unlink(missing_ok=True)
    database = Database(settings.url)
    seal_under(database, sealer.columns)
    stack.callback(database.close)
    stack.callback(metrics.watch(database, clock))
    await asyncio.to_thread(database.migrate_at_start, PACKAGE)
    await asyncio.to_thread(require_same_folder, database, settings.data_dir, sealer)
    await asyncio.to_thread(empty_former, database)
    await asyncio.to_thread(folder.reap_dead, partial(free_leases, database))
    return database


def _hold_database_file(url: str, folder: FolderLock) -> None:
    """Lock the database file, if the database is a file. Raise StartError."""
    parts = make_url(url)
    name = (parts.database or "").removeprefix("file:")
    if dialect_named(parts.get_backend_name()).is_server or not name or name.startswith(":memory:"):
        return
    try:
        folder.hold_database(Path(name))
    except FolderTakenError as error:
        raise StartError(str(error)) from None
    except OSError as error:
        raise StartError(
            f"{name} cannot be the database ({error.strerror}); name another place in AGENT_DATA_DIR or "
            "AGENT_DATABASE_URL"
        ) from None
