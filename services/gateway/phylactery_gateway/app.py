"""Composition of the gateway: channels, stores, background work, and the public port."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import httpx
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.metrics_port import MetricsServer, start_metrics
from phylactery_chassis.rpc.server import authenticator_for
from phylactery_chassis.rpc.workers import write_ready
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import Clock, SystemClock
from phylactery_chassis.util.ids import new_id
from phylactery_client import PhylacteryClient
from starlette.applications import Starlette

from phylactery_gateway.channels.port import SECOND_US, Channel
from phylactery_gateway.delivery.agent import Agent
from phylactery_gateway.delivery.backlog import BacklogWorker
from phylactery_gateway.delivery.followers import Followers
from phylactery_gateway.delivery.housekeeping import Housekeeping
from phylactery_gateway.delivery.sender import Sender
from phylactery_gateway.delivery.turns import TurnWorker
from phylactery_gateway.http.bodies import Bodies
from phylactery_gateway.http.connections import ConnectionLimits
from phylactery_gateway.http.health import Health
from phylactery_gateway.http.rpc import RpcRoutes
from phylactery_gateway.http.server import HttpServer
from phylactery_gateway.http.webhooks import Webhooks
from phylactery_gateway.metrics import Metrics
from phylactery_gateway.rpc.admission import Admission
from phylactery_gateway.rpc.calls import Calls, Limits
from phylactery_gateway.rpc.services import Services
from phylactery_gateway.settings import GatewaySettings
from phylactery_gateway.store.backlog import Backlog
from phylactery_gateway.store.former_texts import seal_former
from phylactery_gateway.store.inbox import Inbox, InboxRules
from phylactery_gateway.store.outbox import Outbox
from phylactery_gateway.store.sealing import Sealer, note_key
from phylactery_gateway.store.turns import Threads, Turns
from phylactery_gateway.telegram.bot_api import BotApi
from phylactery_gateway.telegram.channel import Telegram
from phylactery_gateway.whatsapp.channel import LIMITS, Template, WhatsApp
from phylactery_gateway.whatsapp.graph_api import GraphApi

PACKAGE = "phylactery_gateway"

_log = get_logger("gateway")


@dataclass(slots=True)
class Gateway:
    """The parts of a running gateway."""

    database: Database
    channels: Sequence[Channel]
    agent: Agent
    turns: TurnWorker
    followers: Followers
    sender: Sender
    housekeeping: Housekeeping
    backlog: BacklogWorker
    health: Health
    bodies: Bodies
    http: HttpServer
    rpc: RpcRoutes | None = None

    @property
    def port(self) -> int:
        """The public port."""
        return self.http.port

    async def start(self) -> None:
        """Begin the background work, then accept webhooks."""
        for part in (self.sender, self.followers, self.turns, self.housekeeping, self.backlog, self.health):
            part.loop.start()
        if self.rpc is not None:
            self.rpc.follow_identities()
        await self.http.start()

    async def stop(self) -> None:
        """Take no more requests, finish what is being sent, and close everything."""
        if self.rpc is not None:
            self.rpc.end_streams()
        await self.http.stop()
        if self.rpc is not None:
            await self.rpc.close()
        for part in (self.backlog, self.health, self.housekeeping):
            await part.loop.stop()
        await self.turns.stop()
        await self.followers.stop()
        await self.sender.stop()
        for channel in self.channels:
            await channel.close()
        await self.agent.close()
        await asyncio.to_thread(self.database.close)


async def build(settings: GatewaySettings, *, clock: Clock | None = None) -> Gateway:
    """Open the database, migrate it on SQLite, and return the gateway, not started yet. Raise StartError."""
    clock = clock or SystemClock()
    settings.prepare()
    try:
        channels = channels_of(settings)
        token = settings.agent_token()
    except ValueError as error:
        raise StartError(str(error)) from None
    sealer = Sealer.from_file(settings.data_dir, settings.seal_key_file)
    database = Database(settings.url, options=sealer.options)
    try:
        await asyncio.to_thread(prepare_database, database)
        return assemble(database, settings, channels, Agent(_connector(settings), token), clock)
    except StartError:
        await asyncio.to_thread(database.close)
        raise


def prepare_database(database: Database) -> None:
    """Migrate a database on SQLite, and leave no text in it in clear. Raise StartError."""
    database.migrate_at_start(PACKAGE)
    note_key(database)
    seal_former(database)


def assemble(
    database: Database, settings: GatewaySettings, channels: Sequence[Channel], agent: Agent, clock: Clock
) -> Gateway:
    """Return the gateway over a migrated database. Raise StartError if the port is taken."""
    metrics, by_name = Metrics(), {channel.name: channel for channel in channels}
    metrics.begin(by_name)
    lease_us = int(settings.lease_seconds * SECOND_US)
    outbox = Outbox(database, lease_us)
    sender = Sender(outbox, agent, by_name, clock, metrics)
    followers = Followers(
        Threads(database),
        agent,
        by_name,
        clock,
        added=sender.loop.wake,
        most=settings.max_watches,
        watch_seconds=settings.watch_seconds,
        look_seconds=settings.look_seconds,
    )
    turns = Turns(database, new_id("gw"), lease_us)
    worker = TurnWorker(
        turns,
        agent,
        by_name,
        clock,
        metrics,
        accepted=followers.follow,
        added=sender.loop.wake,
    )

    def stored() -> None:
        sender.loop.wake()
        worker.loop.wake()  # words that stop wait for nothing
        worker.wake_in(settings.debounce_seconds)

    rules = InboxRules(settings.debounce_us, int(settings.human_seconds * SECOND_US), settings.language)
    inbox, waiting = Inbox(database, rules), Backlog(database, lease_us)
    backlog = BacklogWorker(waiting, inbox, turns, by_name, clock, stored=stored)
    largest = max(settings.max_held_bytes, settings.max_body_bytes, settings.max_message_bytes)
    bodies = Bodies(largest, settings.body_seconds)
    webhooks = Webhooks(
        by_name,
        inbox,
        waiting,
        clock,
        metrics,
        bodies=bodies,
        max_bytes=settings.max_body_bytes,
        stored=stored,
        waits=backlog.loop.wake,
    )
    health = Health(database.probe)
    rpc = _rpc_of(settings, metrics, bodies, lambda: http.port) if settings.rpc_services else None
    application = Starlette(routes=[*health.routes(), *webhooks.routes(), *(rpc.routes() if rpc is not None else ())])
    application.router.redirect_slashes = False  # a redirect would name whatever host the request does
    http = HttpServer(
        application,
        settings.host,
        settings.port,
        grace=settings.drain_seconds,
        variable="GATEWAY_PORT or GATEWAY_HOST",
        limits=ConnectionLimits(settings.max_connections, settings.head_seconds),
        refused=metrics.connection_ended,
    )
    housekeeping = Housekeeping(database, outbox, clock, settings.retention_days)
    return Gateway(
        database, channels, agent, worker, followers, sender, housekeeping, backlog, health, bodies, http, rpc
    )


def _rpc_of(settings: GatewaySettings, metrics: Metrics, bodies: Bodies, port: Callable[[], int]) -> RpcRoutes:
    """Return the routes of the services that are offered. Raise StartError for one that does not exist."""
    authenticator = authenticator_for(settings)
    services = Services(settings.rpc_services)
    limits = Limits(
        settings.max_concurrent_rpcs,
        min(settings.max_concurrent_rpcs, settings.max_concurrent_rpcs_per_caller),
        settings.max_streams,
        min(settings.max_streams, settings.max_streams_per_caller),
        settings.rpc_seconds,
    )
    metrics.begin_calls(method.path.removeprefix("/") for method in services.methods)
    calls = Calls(services, Admission(authenticator, settings.rpc_origins), limits, metrics)
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    return RpcRoutes(
        calls,
        services,
        authenticator,
        base=lambda: settings.public_url or f"http://{host}:{port()}",
        origins=settings.rpc_origins,
        bodies=bodies,
        max_bytes=settings.max_message_bytes,
    )


def channels_of(settings: GatewaySettings) -> Sequence[Channel]:
    """Return the configured channels. Raise ValueError if a secret cannot be read."""
    channels: list[Channel] = []
    if settings.whatsapp_on:
        client = httpx.AsyncClient(follow_redirects=False)
        graph = GraphApi(
            settings.whatsapp_api_url,
            settings.secret("whatsapp_token_file"),
            timeout=settings.api_seconds,
            media_hosts=settings.whatsapp_media_hosts,
            client=client,
        )
        limits = replace(
            LIMITS,
            pair_us=int(settings.whatsapp_pair_seconds * SECOND_US),
            pair_burst=settings.whatsapp_pair_burst,
            account_us=int(SECOND_US / settings.whatsapp_number_rate),
        )
        named = settings.whatsapp_template
        channels.append(
            WhatsApp(
                graph,
                app_secret=settings.secret("whatsapp_app_secret_file"),
                verify_token=settings.secret("whatsapp_verify_token_file"),
                numbers=settings.whatsapp_numbers,
                template=Template(named, settings.whatsapp_template_languages) if named else None,
                limits=limits,
                close=client.aclose,
            )
        )
    if settings.telegram_on:
        client = httpx.AsyncClient(follow_redirects=False)
        token = settings.secret("telegram_token_file")
        bot = BotApi(settings.telegram_api_url, token, timeout=settings.api_seconds, client=client)
        channels.append(Telegram(bot, secret=settings.secret("telegram_secret_file"), token=token, close=client.aclose))
    return channels


async def serve(settings: GatewaySettings, page: Callable[[], bytes] | None = None) -> None:
    """Serve until SIGINT or SIGTERM; ``page`` returns the metrics for their port. Raise StartError."""
    gateway = await build(settings)
    scraped = MetricsServer(None)
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        scraped = await start_metrics(page, settings.metrics_host, settings.metrics_port, "GATEWAY_")
        await gateway.start()
        if settings.ready_file is not None:
            ready = {"service": settings.service, "pid": os.getpid(), "port": gateway.port}
            if scraped.port is not None:
                ready["metrics_port"] = scraped.port
            write_ready(settings.ready_file, ready)
        names = [channel.name for channel in gateway.channels]
        offered = sorted(settings.rpc_services)
        _log.info("serving", host=settings.host, port=gateway.port, channels=names, services=offered)
        await stop.wait()
        _log.info("stopping")
    finally:
        await scraped.stop()
        await gateway.stop()


def _connector(settings: GatewaySettings) -> Callable[[str], PhylacteryClient]:
    return lambda token: PhylacteryClient(settings.agent_target, token=token, retry_seconds=0)
