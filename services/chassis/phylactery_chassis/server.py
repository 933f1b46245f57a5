"""Starting, serving and draining one service."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from grpc import aio
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from phylactery_chassis import logs, telemetry
from phylactery_chassis.identity import Authenticator, LoopbackAuthenticator, TokenAuthenticator, TokensFileError
from phylactery_chassis.interceptor import ServerInterceptor
from phylactery_chassis.settings import ServiceSettings

_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"
_HEALTH_SECONDS = 1.0
_BEFORE_DRAIN_SECONDS = 0.2
"""Between NOT_SERVING and the end of accepting, so that balancers look away first."""

Hook = Callable[[], Awaitable[None]]


class StartError(RuntimeError):
    """The service cannot start; the message is for the person who starts it."""


@dataclass(frozen=True, slots=True)
class Registration:
    """One gRPC service: its full name and what adds its servicer to a server."""

    full_name: str
    add: Callable[[aio.Server], None]


@dataclass(frozen=True, slots=True)
class Service:
    """A service ready to be served: what it registers, when it is healthy, what happens around its life."""

    name: str
    registrations: Sequence[Registration]
    healthy: Callable[[], Awaitable[bool]]
    on_start: Sequence[Hook] = ()
    on_stop: Sequence[Hook] = ()


@dataclass(slots=True)
class RunningServer:
    """A server that accepts calls on port."""

    port: int
    _server: aio.Server
    _service: Service
    _health: health_aio.HealthServicer
    _watch: asyncio.Task[None]
    _drain_seconds: float
    _stopped: bool = field(default=False)

    async def stop(self, *, drain_seconds: float | None = None) -> None:
        """Drains: NOT_SERVING, a pause, running calls finish within drain_seconds, then the service's own end."""
        if self._stopped:
            return
        self._stopped = True
        self._watch.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._watch
        grace = self._drain_seconds if drain_seconds is None else drain_seconds
        await self._health.enter_graceful_shutdown()
        if grace:
            await asyncio.sleep(min(_BEFORE_DRAIN_SECONDS, grace))
        await self._server.stop(grace)
        for hook in self._service.on_stop:
            await hook()

    async def wait(self) -> None:
        """Waits until the server has ended."""
        await self._server.wait_for_termination()


def authenticator_for(settings: ServiceSettings) -> Authenticator:
    """Answers the authenticator of the settings' identity mode. Raises StartError."""
    if settings.identity_mode == "none":
        return LoopbackAuthenticator()
    assert settings.tokens_file is not None, "the settings check it"
    try:
        return TokenAuthenticator(settings.tokens_file)
    except TokensFileError as error:
        raise StartError(str(error)) from None


async def start(service: Service, settings: ServiceSettings) -> RunningServer:
    """Binds, registers and starts. Raises StartError when the address is taken or the tokens file is bad."""
    server = aio.server(
        interceptors=[ServerInterceptor(service.name, authenticator_for(settings))],
        maximum_concurrent_rpcs=settings.max_concurrent_rpcs,
        options=[
            ("grpc.so_reuseport", 0),  # on by default: a second server would bind the same port and share its traffic
            ("grpc.max_receive_message_length", settings.max_message_bytes),
            ("grpc.max_metadata_size", 16 * 1024),
            ("grpc.keepalive_time_ms", 60_000),
            ("grpc.http2.min_recv_ping_interval_without_data_ms", 10_000),
        ],
    )
    health = health_aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    for registration in service.registrations:
        registration.add(server)
    _add_reflection(
        server,
        [*(r.full_name for r in service.registrations), health_pb2.DESCRIPTOR.services_by_name["Health"].full_name],
    )
    try:
        port = _bind(server, service.name, settings)
        for hook in service.on_start:
            await hook()
        await server.start()
    except BaseException:
        await server.stop(None)
        raise
    await _tell_health(service, health)
    watch = asyncio.create_task(_watch_health(service, health))
    return RunningServer(port, server, service, health, watch, settings.drain_seconds)


def _bind(server: aio.Server, name: str, settings: ServiceSettings) -> int:
    address = f"{settings.host}:{settings.port}"
    try:
        port = server.add_insecure_port(address)
    except RuntimeError:
        port = 0
    if port == 0:
        raise StartError(
            f"{name} cannot listen on {address}: is another program there? Stop it, or set {name.upper()}_PORT"
        )
    return int(port)


def _add_reflection(server: aio.Server, names: Sequence[str]) -> None:
    """Serves reflection as v1alpha, which grpcio ships, and as v1, whose messages are the same on the wire."""
    names = [*names, reflection.SERVICE_NAME, _REFLECTION_V1]
    reflection.enable_server_reflection(names, server)
    servicer = reflection.aio.ReflectionServicer(service_names=names)
    handler = grpc.stream_stream_rpc_method_handler(
        servicer.ServerReflectionInfo,
        request_deserializer=reflection_pb2.ServerReflectionRequest.FromString,
        response_serializer=reflection_pb2.ServerReflectionResponse.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        (grpc.method_handlers_generic_handler(_REFLECTION_V1, {"ServerReflectionInfo": handler}),)
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


def run(build: Callable[[], Awaitable[Service]], settings: ServiceSettings) -> None:
    """Runs a service until SIGINT or SIGTERM. A fault at start is one sentence on standard error and exit code 2."""
    settings.prepare()
    logs.configure(settings.service, settings.log_level)
    end_telemetry = telemetry.configure(settings.service, settings.data_dir, settings.otlp_endpoint)
    try:
        asyncio.run(_run(build, settings))
    except StartError as error:
        sys.stderr.write(f"{settings.service}: {error}\n")
        raise SystemExit(2) from None
    finally:
        end_telemetry()


async def _run(build: Callable[[], Awaitable[Service]], settings: ServiceSettings) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    running = await start(await build(), settings)
    logs.get_logger("server").info("serving", host=settings.host, port=running.port)
    if settings.ready_file is not None:
        _write_ready(settings.ready_file, {"service": settings.service, "pid": os.getpid(), "port": running.port})
    await stop.wait()
    await running.stop()


def _write_ready(path: Path, content: dict[str, Any]) -> None:
    """Writes the file whole or not at all, so that a reader never sees half."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content))
    part.replace(path)
