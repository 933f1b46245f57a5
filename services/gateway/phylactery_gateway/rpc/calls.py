"""A call from its envelope to its answer: admission, a place, the request, the service, and what is recorded."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf.message import Message
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from phylactery_chassis.errors import DomainError, InvalidArgument
from phylactery_chassis.telemetry import semconv, telemetry
from phylactery_chassis.telemetry.logs import Sampled, get_logger
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.limits import Places, TextWork

from phylactery_gateway.metrics import Metrics
from phylactery_gateway.rpc import decoding
from phylactery_gateway.rpc.admission import TRACE, Admission, Caller, Envelope
from phylactery_gateway.rpc.errors import (
    DeadlineExceeded,
    Failure,
    Unimplemented,
    failure_inside,
    failure_of,
    failure_of_call,
)
from phylactery_gateway.rpc.services import Method, Services

JSON: Final = "application/json"
_SYSTEM: Final = "connectrpc"
_TIMEOUT: Final = "connect-timeout-ms"
_VERSION: Final = "connect-protocol-version"
_LAST_EVENT: Final = "last-event-id"
_MAX_TIMEOUT_DIGITS: Final = 10
_AT_ONCE_BYTES: Final = 4 * 1024
"""JSON of this size is read on the event loop; a larger one would keep the others waiting."""
_OK: Final = "ok"
_CANCELED: Final = "canceled"
_SERVER_FAULTS: Final = frozenset(
    {"unknown", "deadline_exceeded", "unimplemented", "internal", "unavailable", "data_loss"}
)

Body = Callable[[], AbstractAsyncContextManager[bytes]]
"""Holds the body of a request for a block. It raises what the caller gets if there is none."""

_log = get_logger("rpc")


class CallError(Exception):
    """A call failed; the failure is what the caller gets."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.code)
        self.failure = failure


class HungUpError(Exception):
    """The client is gone, and nobody waits for an answer."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How much is served at once, and for how long."""

    calls: int
    calls_of_a_caller: int
    streams: int
    streams_of_a_caller: int
    seconds: float


class Calls:
    """Forwards calls to the services that are offered."""

    def __init__(self, services: Services, admission: Admission, limits: Limits, metrics: Metrics) -> None:
        self._services, self._admission, self._limits, self._metrics = services, admission, limits, metrics
        self._calls = Places("calls", total=limits.calls, each=limits.calls_of_a_caller)
        self._streams = Places("streams", total=limits.streams, each=limits.streams_of_a_caller)
        self._work = TextWork("json")
        self._strangers = Sampled(_log)

    def close(self) -> None:
        """End the threads that read and write JSON."""
        self._work.close()

    def find(self, path: str) -> Method:
        """Return the method at a path that can be called over HTTP. Raise CallError."""
        method = self._services.find(path)
        if method is None:
            raise CallError(
                failure_of(
                    Unimplemented(
                        "METHOD_NOT_SERVED",
                        "no method is served at this path; services are offered by name in GATEWAY_RPC_SERVICES",
                    )
                )
            )
        if method.takes_stream:
            raise CallError(
                failure_of(Unimplemented("STREAM_OF_REQUESTS", "this method takes a stream of requests; use gRPC"))
            )
        return method

    async def unary(self, method: Method, envelope: Envelope, request_id: str, body: Body) -> bytes:
        """Return the response as JSON. Raise CallError."""
        async with self._served(method, envelope, request_id, self._calls) as caller:
            request = await self._read(method, caller, body)
            response = await self._answer(method, envelope, caller, request)
            return await self._written(caller, response)

    async def stream(
        self, method: Method, envelope: Envelope, request_id: str, body: Body
    ) -> AsyncGenerator[tuple[Message, bytes] | None]:
        """Yield None once the request was taken, and then each response with its JSON. Raise CallError."""
        async with self._served(method, envelope, request_id, self._streams) as caller:
            request = await self._read(method, caller, body)
            last = envelope.header(_LAST_EVENT)
            if last and not method.continue_after(request, last):
                raise InvalidArgument("INVALID_REQUEST", "Last-Event-ID is not of an event of this stream")
            seconds = _timeout_of(envelope)
            await self._services.check_identity(method, required=not self._admission.local_only)
            call = method.call(request, metadata=caller.metadata, timeout=seconds)
            try:
                yield None
                async for response in call:
                    yield response, await self._written(caller, response)
            finally:
                call.cancel()

    async def ask(
        self,
        method: Method,
        envelope: Envelope,
        request_id: str,
        body: Body,
        *,
        answer: Callable[[Any, Callable[[Message], Awaitable[Any]]], Awaitable[Any]],
    ) -> bytes:
        """Return the JSON of what ``answer`` makes of a request that may have unknown fields, asking the service.

        Raise CallError.
        """
        async with self._served(method, envelope, request_id, self._calls) as caller:
            request = await self._read(method, caller, body, ignore_unknown=True)
            response = await answer(request, lambda one: self._answer(method, envelope, caller, one))
            return await self._written(caller, response)

    async def _answer(self, method: Method, envelope: Envelope, caller: Caller, request: Message) -> Message:
        given = _timeout_of(envelope)
        seconds = self._limits.seconds if given is None else min(given, self._limits.seconds)
        await self._services.check_identity(method, required=not self._admission.local_only)
        response: Message = await method.call(request, metadata=caller.metadata, timeout=seconds)
        return response

    async def _read(self, method: Method, caller: Caller, body: Body, *, ignore_unknown: bool = False) -> Message:
        async with body() as received:

            def read() -> Message:
                return decoding.read(method.request, received, ignore_unknown=ignore_unknown)

            if len(received) <= _AT_ONCE_BYTES:
                return read()
            return await self._work.run(caller.key, len(received), read)

    async def _written(self, caller: Caller, message: Message) -> bytes:
        size = message.ByteSize()
        if size <= _AT_ONCE_BYTES:
            return decoding.write(message)
        return await self._work.run(caller.key, size, lambda: decoding.write(message))

    @asynccontextmanager
    async def _served(
        self, method: Method, envelope: Envelope, request_id: str, places: Places
    ) -> AsyncIterator[Caller]:
        """Admit the caller and take its place for the block; turn what the block raises into CallError."""
        begun, code, caller = time.perf_counter(), _OK, None
        name = method.path.removeprefix("/")
        with telemetry.span(
            name,
            kind=SpanKind.SERVER,
            parent=telemetry.extract({TRACE: envelope.header(TRACE)}),
            attributes={semconv.RPC_SYSTEM: _SYSTEM, semconv.RPC_METHOD: name},
        ) as span:
            failure: Failure | None = None
            try:
                _check_form(envelope)
                caller = self._admission.admit(envelope, request_id)
                give_back = places.take(caller.key)
                try:
                    yield caller
                finally:
                    give_back()
            except DomainError as error:
                failure = failure_of(error)
            except aio.AioRpcError as error:
                failure = failure_of_call(error)
            except (asyncio.CancelledError, GeneratorExit, HungUpError):
                code = _CANCELED
                raise
            except Exception as error:  # noqa: BLE001 - an exception's text must not reach the caller
                failure = _unexpected(name, error)
            finally:
                code = failure.code if failure is not None else code
                self._record(name, code, time.perf_counter() - begun, span, caller)
        if failure is not None:
            raise CallError(failure)

    def _record(self, name: str, code: str, seconds: float, span: Span, caller: Caller | None) -> None:
        span.set_attribute(semconv.RPC_STATUS, code)
        if code in _SERVER_FAULTS:
            span.set_status(Status(StatusCode.ERROR))
        self._metrics.called(name, code, seconds)
        if caller is None:
            self._strangers.warning("rpc over http refused", key=code, status=code)
            return
        who = {"subject": caller.principal.subject, "tenant": caller.principal.tenant}
        level = _log.warning if code in _SERVER_FAULTS else _log.info
        level("rpc over http", method=name, status=code, ms=round(seconds * 1_000, 2), **who)


def _unexpected(name: str, error: Exception) -> Failure:
    """Log where an unexpected error was raised, not its text, which can hold a value."""
    error_id = new_id("err")
    frames = [
        f"{one.filename.rsplit('/', 1)[-1]}:{one.lineno} {one.name}"
        for one in traceback.extract_tb(error.__traceback__)
    ]
    _log.error("unexpected error", method=name, error_id=error_id, error=type(error).__name__, frames=frames[-12:])
    return failure_inside(error_id)


def _check_form(envelope: Envelope) -> None:
    """Raise a DomainError if the body is in a form that is not read here."""
    encoding = envelope.header("content-encoding")
    if encoding not in {"", "identity"}:
        raise Unimplemented("COMPRESSION", "a compressed body is not read here; send it as it is")
    if envelope.header(_VERSION) not in {"", "1"}:
        raise InvalidArgument("INVALID_REQUEST", "Connect-Protocol-Version is not 1")
    _timeout_of(envelope)


def _timeout_of(envelope: Envelope) -> float | None:
    """Return the seconds that the caller gives its call, None if it does not say.

    Raise InvalidArgument if it is not a number, DeadlineExceeded if it is none.
    """
    given = envelope.header(_TIMEOUT)
    if not given:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= _MAX_TIMEOUT_DIGITS):
        raise InvalidArgument("INVALID_REQUEST", "Connect-Timeout-Ms is not a number of milliseconds")
    if not int(given):
        raise DeadlineExceeded("DEADLINE_EXCEEDED", "Connect-Timeout-Ms leaves the call no time")
    return int(given) / 1_000
