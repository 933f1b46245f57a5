"""Listening ports, server reflection and the admin server."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc
from grpc import aio
from grpc_channelz.v1 import channelz, channelz_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_health.v1.health import aio as health_aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from phylactery_chassis.errors import StartError
from phylactery_chassis.rpc.open_calls import OpenToAll

_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"


def bind(server: aio.Server, host: str, port: int, variables: str, *, shared: bool = False) -> int:
    """Bind the server and return its port; ``shared`` says that the port is reserved for several processes.

    Raise StartError naming the variables that set the address.
    """
    with saying_why(host, port, variables):
        bound(host, port, shared=shared).close()  # grpc does not return the reason and logs its own line
        taken = int(server.add_insecure_port(_written(host, port)))
    return taken  # noqa: RET504 - a type checker assumes that the block could end without it


@contextlib.contextmanager
def reserve(host: str, port: int, variables: str) -> Iterator[socket.socket]:
    """Reserve a port for the block, without listening, so that several processes of this service may share it.

    Raise StartError as bind does, also if another process already listens there.
    """
    with saying_why(host, port, variables):
        free = bound(host, port, shared=False)
        port = free.getsockname()[1]
        free.close()
        reserved = bound(host, port, shared=True)
    with reserved:
        yield reserved


@contextlib.contextmanager
def saying_why(host: str, port: int, variables: str) -> Iterator[None]:
    """Turn an address that cannot be listened on, within the block, into a StartError that names the variables."""
    try:
        yield
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it was refused"
        raise StartError(
            f"cannot listen on {_written(host, port)} ({why}); stop the program that is there, or set {variables}"
        ) from None


def bound(host: str, port: int, *, shared: bool) -> socket.socket:
    """Return a socket bound to the address. Raise OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as grpc does: a port in TIME_WAIT is free
        if shared:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        opened.bind(address)
    except OSError:
        opened.close()
        raise
    return opened


def _written(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def add_reflection(server: aio.Server, names: Sequence[str]) -> None:
    """Serve reflection as v1alpha, which grpcio ships, and as v1, whose messages are identical on the wire."""
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


_LOOPBACK = "127.0.0.1"


@dataclass(frozen=True, slots=True)
class AdminServer:
    """The admin port of a running service; ``port`` is None if it has none."""

    port: int | None
    _server: aio.Server | None

    async def stop(self) -> None:
        """Stop at once: no call here has to finish."""
        if self._server is not None:
            await self._server.stop(None)


async def start_admin(service: str, health: health_aio.HealthServicer, port: int | None, variable: str) -> AdminServer:
    """Serve the admin port of a service: none for None, a free port for 0. Raise StartError if it is taken."""
    if port is None:
        return AdminServer(None, None)
    server = aio.server(interceptors=[OpenToAll(service)], options=[("grpc.so_reuseport", 0)])
    channelz.add_channelz_servicer(server)
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    described = (channelz_pb2.DESCRIPTOR.services_by_name["Channelz"], health_pb2.DESCRIPTOR.services_by_name["Health"])
    add_reflection(server, [one.full_name for one in described])
    taken = bind(server, _LOOPBACK, port, variable)
    await server.start()
    return AdminServer(taken, server)
