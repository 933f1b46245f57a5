"""Start, serve and drain one service."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar, cast

import grpc
from google.protobuf.descriptor import FileDescriptor
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio

from phylactery_chassis.auth.identity import Authenticator, LoopbackAuthenticator, TokenAuthenticator, TokensFileError
from phylactery_chassis.db.database import Database
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.rpc import hangup
from phylactery_chassis.rpc.interceptor import Limits, RunningCalls, ServerInterceptor
from phylactery_chassis.rpc.listeners import AdminServer, add_reflection, bind, start_admin
from phylactery_chassis.rpc.metrics_port import MetricsServer, start_metrics
from phylactery_chassis.rpc.workers import Workers, write_ready
from phylactery_chassis.settings import ServiceSettings, Settings, load
from phylactery_chassis.telemetry import logs, telemetry
from phylactery_chassis.util.version import version_line

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"


class Methods(grpc.GenericRpcHandler):
    """A generic handler that generated code registers methods with, as if it were a server."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}

    @property
    def names(self) -> Sequence[str]:
        """The full names of the methods, each with a leading slash."""
        return tuple(self._handlers)

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        """Ignore them: the same methods are added by name."""

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Handler]) -> None:
        """Add the methods of a service."""
        self._handlers.update({f"/{service}/{name}": handler for name, handler in handlers.items()})

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        """Return the handler of the called method, None if there is none."""
        return self._handlers.get(handler_call_details.method)


_HEALTH_SECONDS = 1.0
_TOKENS_SECONDS = 1.0
_BEFORE_DRAIN_SECONDS = 0.2
"""The pause between NOT_SERVING and refusing calls, so that load balancers stop sending first."""
_OPEN_FILES = 65_536
_MIN_PING_INTERVAL_MS = 5_000
"""The minimum interval of client pings on an idle connection. gRPC's default, 5 minutes, ends a client that pings each
minute with GOAWAY too_many_pings; gRPC libraries ping every 10 seconds at most, and half of that tolerates late
timers."""

_PENDING = 8_000
"""How many calls may wait to be looked at before gRPC cancels some at random, whoever's they are: 1,000 without this.

Four connections that begin and reset calls as fast as they can have as many waiting as they may have open. With this,
and with few open calls of a connection, they delay others by half a second instead of having their calls cancelled."""

Hook = Callable[[], Awaitable[None]]
S = TypeVar("S")


@dataclass(frozen=True, slots=True)
class Registration:
    """One gRPC service: its full name, and the function that adds its servicer to a server."""

    full_name: str
    add: Callable[[aio.Server], None]


def registration(file: FileDescriptor, name: str, add: Callable[[S, aio.Server], None], servicer: S) -> Registration:
    """Return the registration of a servicer, from a service's file descriptor and its generated function."""
    return Registration(file.services_by_name[name].full_name, lambda server: add(servicer, server))


@dataclass(frozen=True, slots=True)
class Service:
    """A service ready to be served: what it registers, when it is healthy, and its lifecycle hooks.

    ``on_serving`` runs once the process accepts calls and logs what the operator should know; a failed start prints its
    one sentence and nothing else. ``on_drain`` runs when no new calls are accepted and calls still run: endless streams
    end there.
    """

    name: str
    registrations: Sequence[Registration]
    healthy: Callable[[], Awaitable[bool]]
    on_start: Sequence[Hook] = ()
    on_serving: Sequence[Callable[[], None]] = ()
    on_drain: Sequence[Hook] = ()
    on_stop: Sequence[Hook] = ()
    running: RunningCalls = field(default_factory=RunningCalls)


@dataclass(slots=True)
class RunningServer:
    """A server that accepts calls on port, and on admin_port and metrics_port if it has them."""

    port: int
    admin_port: int | None
    metrics_port: int | None
    _server: aio.Server
    _admin: AdminServer
    _metrics: MetricsServer
    _service: Service
    _health: health_aio.HealthServicer
    _watch: asyncio.Task[None]
    _identities: IdentityWatch
    _drain_seconds: float
    _stopped: bool = field(default=False)

    async def stop(self, *, drain_seconds: float | None = None) -> None:
        """Drain: NOT_SERVING, a pause, running calls finish within drain_seconds, then the service's own shutdown."""
        if self._stopped:
            return
        self._stopped = True
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        await self._identities.end()
        grace = self._drain_seconds if drain_seconds is None else drain_seconds
        await self._health.enter_graceful_shutdown()
        for hook in self._service.on_drain:
            await hook()
        if grace:
            await asyncio.sleep(min(_BEFORE_DRAIN_SECONDS, grace))
        await self._server.stop(grace)
        await self._admin.stop()
        await self._metrics.stop()
        for hook in self._service.on_stop:
            await hook()

    async def wait(self) -> None:
        """Wait until the server has ended."""
        await self._server.wait_for_termination()


def authenticator_for(settings: ServiceSettings) -> Authenticator:
    """Return the authenticator for the settings' identity mode. Raise StartError."""
    if settings.identity_mode == "none":
        return LoopbackAuthenticator()
    assert settings.tokens_file is not None, "the settings check it"
    try:
        return TokenAuthenticator(settings.tokens_file)
    except TokensFileError as error:
        variable = f"{settings.model_config.get('env_prefix', '')}TOKENS_FILE"
        make = "make one with `phylactery tokens add` or `riskgate tokens add`"
        todo = "mend the file" if settings.tokens_file.is_file() else make
        raise StartError(f"{error}; {todo}, or name another in {variable}") from None


async def start(service: Service, settings: ServiceSettings, page: Callable[[], bytes] | None = None) -> RunningServer:
    """Bind, register and start. Raise StartError if an address is taken or the tokens file is invalid.

    ``page`` returns the metrics for the metrics port; without it there is no such port.

    A service that fails to start is shut down like a stopped one, so that it leaves nothing open.
    """
    health = _Health()
    async with contextlib.AsyncExitStack() as undo:
        for hook in reversed(service.on_stop):
            undo.push_async_callback(hook)
        authenticator = authenticator_for(settings)
        limits = Limits(
            settings.max_concurrent_rpcs,
            min(settings.max_concurrent_rpcs, settings.max_concurrent_rpcs_per_caller),
            settings.max_streams,
            min(settings.max_streams, settings.max_streams_per_caller),
        )
        interceptor = ServerInterceptor(service.name, authenticator, limits, service.running)
        server = _make_server(service, settings, health, interceptor)
        undo.push_async_callback(server.stop, None)
        prefix = service.name.upper()
        port = bind(server, settings.host, settings.port, f"{prefix}_PORT or {prefix}_HOST", shared=settings.share_port)
        admin = await start_admin(service.name, health, settings.admin_port, f"{prefix}_ADMIN_PORT")
        undo.push_async_callback(admin.stop)
        metrics = await start_metrics(page, settings.metrics_host, settings.metrics_port, f"{prefix}_")
        undo.push_async_callback(metrics.stop)
        for hook in service.on_start:
            await hook()
        await server.start()
        undo.pop_all()
    await _tell_health(service, health)
    watch = asyncio.create_task(_watch_health(service, health))
    identities = IdentityWatch(authenticator, interceptor.end_withdrawn)
    return RunningServer(
        port,
        admin.port,
        metrics.port,
        server,
        admin,
        metrics,
        service,
        health,
        watch,
        identities,
        settings.drain_seconds,
    )


def _make_server(
    service: Service, settings: ServiceSettings, health: health_aio.HealthServicer, interceptor: ServerInterceptor
) -> aio.Server:
    server = aio.server(
        interceptors=[interceptor],  # gRPC's own limit would count calls of every caller and method together
        options=[
            # on by default: a second server would bind the same port and share its traffic
            ("grpc.so_reuseport", int(settings.share_port)),
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            ("grpc.max_metadata_size", 16 * 1024),
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.http2.min_ping_interval_without_data_ms", _MIN_PING_INTERVAL_MS),
            ("grpc.max_concurrent_streams", settings.max_streams_per_connection),
            ("grpc.server.max_pending_requests", _PENDING),
            ("grpc.server.max_pending_requests_hard_limit", 2 * _PENDING),
        ],
    )
    methods = Methods()
    as_server = cast("aio.Server", methods)
    health_pb2_grpc.add_HealthServicer_to_server(health, as_server)
    for registration in service.registrations:
        registration.add(as_server)
    server.add_generic_rpc_handlers((methods,))
    own = health_pb2.DESCRIPTOR.services_by_name["Health"].full_name
    interceptor.count_from_zero(methods.names)
    add_reflection(server, [*(registration.full_name for registration in service.registrations), own])
    return server


class _Health(health_aio.HealthServicer):
    """The library's servicer with the List method that its asyncio version lacks."""

    async def List(  # noqa: N802 - the name of the RPC
        self,
        request: health_pb2.HealthListRequest,  # noqa: ARG002 - it is empty
        context: aio.ServicerContext[Any, Any],  # noqa: ARG002 - the library calls it with one
    ) -> health_pb2.HealthListResponse:
        """Return the status of every service on this port."""
        statuses = self._server_status.items()
        return health_pb2.HealthListResponse(
            statuses={name: health_pb2.HealthCheckResponse(status=status) for name, status in statuses}
        )


async def _tell_health(service: Service, health: health_aio.HealthServicer) -> None:
    status = health_pb2.HealthCheckResponse
    state = status.SERVING if await service.healthy() else status.NOT_SERVING
    for name in ("", *(registration.full_name for registration in service.registrations)):
        await health.set(name, state)


async def _watch_health(service: Service, health: health_aio.HealthServicer) -> None:
    while True:
        await asyncio.sleep(_HEALTH_SECONDS)
        await _tell_health(service, health)


class IdentityWatch:
    """Keeps the identities of an authenticator current: it looks each second, and at once on SIGHUP."""

    def __init__(self, authenticator: Authenticator, refreshed: Callable[[], None]) -> None:
        """Call ``refreshed`` after each look."""
        self._authenticator, self._refreshed = authenticator, refreshed
        self._task = asyncio.create_task(self._watch())
        hangup.subscribe(self._look_now)

    async def end(self) -> None:
        """Look no more."""
        hangup.unsubscribe(self._look_now)
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def _look_now(self) -> None:
        self._look(now=True)

    def _look(self, *, now: bool = False) -> None:
        self._authenticator.refresh(now=now)
        self._refreshed()

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(_TOKENS_SECONDS)
            self._look()


def run(kind: type[Settings], build: Callable[[Settings], Awaitable[Service]], **options: Any) -> None:
    """Run a service until SIGINT or SIGTERM, as every `python -m phylactery_<service>` does.

    ``options`` are settings that override the environment. If the service cannot start, print one sentence that names
    the variable or file at fault to standard error, and exit with code 2.
    """
    with _one_sentence(kind):
        with _as_start_errors(kind):
            settings = load(kind, **options)
            settings.prepare()
            logs.configure(settings.service, settings.log_level)
            observed = telemetry.configure(
                settings.service,
                settings.data_dir,
                settings.otlp_endpoint,
                scraped=settings.metrics_port is not None,
            )
        allow_many_connections()
        try:
            asyncio.run(_run(build, settings, observed.page))
        finally:
            observed.end()


def run_workers(kind: type[Settings], count: int, **options: Any) -> None:
    """Run a service as several processes on one port until SIGINT or SIGTERM; otherwise as run() does."""
    with _one_sentence(kind), _as_start_errors(kind):
        settings = load(kind, **options)
        settings.prepare()
        logs.configure(settings.service, settings.log_level)
        command = [sys.executable, "-m", f"phylactery_{settings.service}"]
        code = Workers(settings, count, command, options).run()
    raise SystemExit(code)


def migrate(kind: type[Settings], **options: Any) -> None:
    """Migrate the service's database to this program's schema: `python -m phylactery_<service> migrate`.

    SQLite is migrated at every start; PostgreSQL only here, so that no replica changes a schema that others use.
    """
    with _one_sentence(kind), _as_start_errors(kind):
        settings = load(kind, **options)
        settings.prepare()
        database = Database(settings.url)
        try:
            database.migrate(f"phylactery_{settings.service}")
        finally:
            database.close()
    sys.stdout.write(f"{kind.service}: the schema is up to date\n")


def main(kind: type[Settings], build: Callable[[Settings], Awaitable[Service]]) -> None:
    """Run the command line of `python -m phylactery_<service>`: the service, `migrate` or `--version`."""
    match sys.argv[1:]:
        case []:
            run(kind, build)
        case ["migrate"]:
            migrate(kind)
        case ["--version"]:
            sys.stdout.write(f"{version_line(f'phylactery-{kind.service}')}\n")
        case _:
            sys.stderr.write(f"usage: python -m phylactery_{kind.service} [migrate | --version]\n")
            raise SystemExit(2)


@contextlib.contextmanager
def _one_sentence(kind: type[ServiceSettings]) -> Iterator[None]:
    """Exit with one sentence and code 2 if the block raises StartError."""
    try:
        yield
    except StartError as error:
        sys.stderr.write(f"{kind.service}: {' '.join(str(error).split())}\n")
        raise SystemExit(2) from None


@contextlib.contextmanager
def _as_start_errors(kind: type[ServiceSettings]) -> Iterator[None]:
    """Convert errors of files, sockets and the store during a start into StartError."""
    try:
        yield
    except OSError as error:
        what = f"{error.filename} cannot be used" if error.filename else "the operating system refused"
        raise StartError(
            f"{what} ({error.strerror or type(error).__name__}); give the service the right to use it, "
            f"or name another place in {kind.model_config.get('env_prefix', '')}DATA_DIR"
        ) from None
    except DomainError as error:
        raise StartError(error.message) from None


async def _run(
    build: Callable[[Settings], Awaitable[Service]], settings: Settings, page: Callable[[], bytes] | None
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(number: signal.Signals) -> None:
        logs.get_logger("server").info("stopping", signal=number.name)  # distinguishes a stop from a crash in the log
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, end, number)
    with _as_start_errors(type(settings)):
        service = await build(settings)
        running = await start(service, settings, page)
    _freeze_gc()
    ready = {"service": settings.service, "pid": os.getpid(), "port": running.port}
    for name in ("admin_port", "metrics_port"):
        if (other := getattr(running, name)) is not None:
            ready[name] = other
    try:
        if settings.ready_file is not None:
            write_ready(settings.ready_file, ready)
    except OSError as error:
        await running.stop(drain_seconds=0)
        raise StartError(
            f"{settings.ready_file} cannot be written ({error.strerror}); "
            f"name another file in {settings.model_config.get('env_prefix', '')}READY_FILE"
        ) from None
    logs.get_logger("server").info("serving", host=settings.host, port=running.port)
    for tell in service.on_serving:
        tell()
    await stop.wait()
    await running.stop()


def allow_many_connections() -> None:
    """Raise the soft limit on open files, often 1,024, to what this process may have: each connection takes one.

    A thousand idle connections would otherwise keep everybody else out. A system that allows no more changes nothing.
    """
    with contextlib.suppress(OSError, ValueError):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = _OPEN_FILES if hard == resource.RLIM_INFINITY else min(_OPEN_FILES, hard)
        if soft != resource.RLIM_INFINITY and soft < wanted:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _freeze_gc() -> None:
    """Move the objects created at start out of the garbage collector's view.

    They live as long as the process; an agent has a quarter of a million of them, and each full collection over them
    would stop every call for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
