"""Ports, and how a server describes itself on them."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import grpc
from grpc import aio
from grpc_reflection.v1alpha import reflection, reflection_pb2

from phylactery_chassis.errors import StartError

_REFLECTION_V1 = "grpc.reflection.v1.ServerReflection"


def bind(server: aio.Server, host: str, port: int, variables: str) -> int:
    """Binds the server and answers its port. Raises StartError, which names the variables that would move it."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        _try_address(host, port)
        return int(server.add_insecure_port(address))
    except (OSError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "it was refused"
        raise StartError(
            f"cannot listen on {address} ({why}); stop the program that is there, or set {variables}"
        ) from None


def _try_address(host: str, port: int) -> None:
    """Binds for a moment, because grpc keeps the reason to itself and writes a line of its own. Raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as grpc does: a port in TIME_WAIT is free
        probe.bind(address)


def add_reflection(server: aio.Server, names: Sequence[str]) -> None:
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
