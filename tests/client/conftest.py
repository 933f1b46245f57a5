"""A real aio server that records requests and returns scripted responses."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2
from grpc import aio
from grpc_status import rpc_status


@dataclass
class Failure:
    """A scripted refusal; details None sends a bare status, bytes send that as grpc-status-details-bin."""

    code: grpc.StatusCode
    message: str = "no"
    details: list[Message] | bytes | None = None


@dataclass
class Received:
    """One call as the server saw it."""

    name: str
    requests: list[Any]
    metadata: dict[str, str]
    seconds: float | None

    @property
    def request(self) -> Any:
        return self.requests[0]


@dataclass
class Wire:
    """Records calls, and answers each with the next of its script; the last answer repeats."""

    target: str = ""
    calls: list[Received] = field(default_factory=list)
    script: dict[str, list[Any]] = field(default_factory=dict)
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    def answer(self, name: str, *answers: Any) -> None:
        self.script[name] = list(answers)

    def answer_after(self, name: str, *first: Any) -> None:
        """Put answers before the ones scripted; after them comes the default."""
        self.script[name] = [*first, *self.script.get(name, [None])]

    def next_answer(self, name: str, kind: type[Message]) -> Any:
        answers = self.script.get(name) or [None]
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        return kind() if answer is None else answer


class _Handlers(grpc.GenericRpcHandler):
    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def service(self, details: grpc.HandlerCallDetails) -> Any:
        service, _, name = details.method.lstrip("/").rpartition("/")
        method = descriptor_pool.Default().FindServiceByName(service).methods_by_name[name]
        takes, gives = (message_factory.GetMessageClass(kind) for kind in (method.input_type, method.output_type))
        metadata = {key: value for key, value in details.invocation_metadata if isinstance(value, str)}
        wire = self._wire

        async def received(requests: Any, context: Any) -> Any:
            many = [one async for one in requests] if method.client_streaming else [requests]
            wire.calls.append(Received(name, many, metadata, context.time_remaining()))
            return wire.next_answer(name, gives)

        async def unary(requests: Any, context: Any) -> Any:
            return await _one(await received(requests, context), context)

        async def stream(requests: Any, context: Any) -> AsyncIterator[Any]:
            try:
                for one in await received(requests, context):
                    yield await _one(one, context)
            except (asyncio.CancelledError, GeneratorExit):  # the latter if the caller left while a message was sent
                wire.cancelled.set()
                raise

        kind = "stream" if method.client_streaming else "unary"
        gives_kind = "stream" if method.server_streaming else "unary"
        make = getattr(grpc, f"{kind}_{gives_kind}_rpc_method_handler")
        return make(
            stream if method.server_streaming else unary,
            request_deserializer=takes.FromString,
            response_serializer=gives.SerializeToString,
        )


async def _one(answer: Any, context: Any) -> Any:
    if callable(answer):
        answer = await answer()
    if not isinstance(answer, Failure):
        return answer
    if isinstance(answer.details, bytes):
        await context.abort(answer.code, answer.message, (("grpc-status-details-bin", answer.details),))
    if answer.details is None:
        await context.abort(answer.code, answer.message)
    packed = []
    for detail in answer.details:
        packed.append(any_pb2.Any())
        packed[-1].Pack(detail)
    status = status_pb2.Status(code=answer.code.value[0], message=answer.message, details=packed)
    return await context.abort_with_status(rpc_status.to_status(status))


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    recorded = Wire()
    server = aio.server(options=[("grpc.so_reuseport", 0)])
    server.add_generic_rpc_handlers((_Handlers(recorded),))
    recorded.target = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
    await server.start()
    yield recorded
    await server.stop(0)


@pytest.fixture
async def connect(wire: Wire) -> AsyncIterator[Callable[..., Any]]:
    """Make a client of a class on the recording server, and close it at the end."""
    opened = []

    def make(kind: type, **options: Any) -> Any:
        opened.append(kind(wire.target, **options))
        return opened[-1]

    yield make
    for client in opened:
        await client.close()


@pytest.fixture
def refusal() -> Callable[..., Failure]:
    """Make a scripted refusal as the services send it."""

    def make(code: grpc.StatusCode, reason: str = "", fields: tuple[str, ...] = (), **metadata: str) -> Failure:
        details: list[Message] = [
            error_details_pb2.ErrorInfo(reason=f"ERROR_REASON_{reason}", domain="memory.phylactery", metadata=metadata)
        ]
        if fields:
            violations = [error_details_pb2.BadRequest.FieldViolation(field=f, description="bad") for f in fields]
            details.append(error_details_pb2.BadRequest(field_violations=violations))
        return Failure(code, f"it is {code.name}", details)

    return make


@pytest.fixture
def bare() -> Callable[..., Failure]:
    """Make a refusal with the raw bytes of its details, or none."""
    return lambda code, details: Failure(code, "no", details)


@pytest.fixture
def unused_target() -> Iterator[str]:
    """An address where nothing listens: bound, so that nobody else takes it, and silent."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"127.0.0.1:{taken.getsockname()[1]}"
