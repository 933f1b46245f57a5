"""The parts of an agent that serve its turns: shared parts, turn server, dispatcher, and erasure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from phylactery_chassis.db.database import Database
from phylactery_chassis.erasure.log import ErasureLog
from phylactery_chassis.util.clock import Clock

from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_agent.connections import Outside
from phylactery_agent.graph.core.registry import Graphs
from phylactery_agent.graph.react.state import ReactOptions
from phylactery_agent.runtime.dispatch.claims import ClaimStore
from phylactery_agent.runtime.dispatch.dispatcher import Dispatcher
from phylactery_agent.runtime.dispatch.leases import Leases
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.dispatch.replicas import LOOK_SECONDS, Replicas
from phylactery_agent.runtime.effects.delivery import Delivery
from phylactery_agent.runtime.effects.outbox import OutboxStore
from phylactery_agent.runtime.intake.changes import ThreadChanges
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.intake.redaction import Sanitizing
from phylactery_agent.runtime.privacy.erase_user import Privacy, PrivacyDeps
from phylactery_agent.runtime.privacy.erasure_store import Erasure, ErasureStore
from phylactery_agent.runtime.reminders.scheduler import ReminderScheduler
from phylactery_agent.runtime.reminders.store import Reminding
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.turn.model_session import RunModels
from phylactery_agent.runtime.turn.server import TurnDeps, TurnServer
from phylactery_agent.settings import AgentSettings

if TYPE_CHECKING:
    from phylactery_agent.llm_client.router import Models


@dataclass(frozen=True, slots=True)
class Shared:
    """The parts that the other parts share."""

    settings: AgentSettings
    clock: Clock
    database: Database
    outside: Outside
    models: Models | None
    holder: str
    look_seconds: float | None
    """Interval, in seconds, of the search for what another process left; None if there is no other process."""
    inbox: InboxStore
    runs: RunStore
    replicas: Replicas
    news: ThreadNotifier
    named_leases: NamedLeases
    delivery: Delivery
    firing: ReminderScheduler
    sanitizing: Sanitizing


def make_shared(
    settings: AgentSettings, clock: Clock, database: Database, outside: Outside, models: Models | None
) -> Shared:
    """Return the shared parts."""
    holder, look_seconds = outside.folder.holder, LOOK_SECONDS if settings.shared else None
    named_leases = NamedLeases(database, clock, holder, seconds=settings.lease_seconds)
    replicas = Replicas(settings.url, holder, shared=settings.shared, named_leases=named_leases)
    news = ThreadNotifier(replicas.forward)
    delivery = Delivery(
        OutboxStore(database, clock),
        outside.services,
        named_leases,
        retry_seconds=settings.retry_seconds,
        look_seconds=look_seconds,
    )
    return Shared(
        settings=settings,
        clock=clock,
        database=database,
        outside=outside,
        models=models,
        holder=holder,
        look_seconds=look_seconds,
        inbox=InboxStore(database, clock),
        runs=RunStore(database, clock, change_seconds=settings.change_seconds),
        replicas=replicas,
        news=news,
        named_leases=named_leases,
        delivery=delivery,
        firing=ReminderScheduler(database, clock, news, delivery, poll_seconds=settings.reminder_poll_seconds),
        sanitizing=Sanitizing(outside.services, outside.sealer),
    )


def make_turns(shared: Shared) -> TurnServer:
    """Return the turn server."""
    settings, clock, database = shared.settings, shared.clock, shared.database
    saver = Checkpoints(database, keep_writes=False)  # graph nodes never run in parallel
    return TurnServer(
        TurnDeps(
            database=database,
            clock=clock,
            runs=shared.runs,
            leases=Leases(database, clock, seconds=settings.lease_seconds),
            services=shared.outside.services,
            delivery=shared.delivery,
            news=shared.news,
            sealer=shared.outside.sealer,
            sanitizing=shared.sanitizing,
            graphs=Graphs(saver, _react_options(settings)),
            executor=shared.outside.executor,
            evict_over_chars=settings.evict_over_chars,
            active_seconds=settings.active_seconds,
            models=RunModels(shared.models, database, clock) if shared.models is not None else None,
            interpreter_seconds=settings.interpreter_seconds if settings.interpreter == "on" else 0.0,
            changes=ThreadChanges(database, clock, seconds=settings.change_seconds),
            reminding=Reminding(database, clock, settings.time_zone, settings.reminders_per_user, shared.firing.wake),
        )
    )


def make_runner(shared: Shared, turns: TurnServer) -> Dispatcher:
    """Return the dispatcher, which claims turns and has them served."""
    settings = shared.settings
    return Dispatcher(
        shared.inbox,
        ClaimStore(shared.database, shared.clock, lease_seconds=settings.lease_seconds),
        turns.serve,
        shared.named_leases,
        holder=shared.holder,
        max_concurrent=settings.max_concurrent_turns,
        retry_seconds=settings.retry_seconds,
        shared=settings.shared,
        hydrating=None if settings.shared else turns.hydrating,
        on_return=turns.tell,
        on_overflow=shared.replicas.offer_work,
        on_hold=shared.replicas.hold,
    )


def make_privacy(shared: Shared, runner: Dispatcher, log: ErasureLog[Erasure]) -> Privacy:
    """Return the Privacy part, which erases users."""
    return Privacy(
        PrivacyDeps(
            store=ErasureStore(shared.database, shared.clock),
            log=log,
            clock=shared.clock,
            runner=runner,
            inbox=shared.inbox,
            delivery=shared.delivery,
            services=shared.outside.services,
            news=shared.news,
            forget_effects=shared.outside.executor.forget,
            forget_files=shared.outside.executor.forget_user,
            kept_files=shared.outside.executor.kept_users,
            retry_seconds=shared.settings.retry_seconds,
            named_leases=shared.named_leases,
            look_seconds=shared.look_seconds,
        )
    )


def _react_options(settings: AgentSettings) -> ReactOptions:
    return ReactOptions(
        max_steps=settings.react_max_steps, tool_rounds=settings.react_tool_rounds, llm_fallback=settings.llm_fallback
    )
