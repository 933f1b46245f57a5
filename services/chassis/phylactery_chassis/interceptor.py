"""The one server interceptor: span, log line, metric, identity, deadline and error mapping in a single pass."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from typing import Any, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phylactery_chassis import semconv, telemetry
from phylactery_chassis.errors import DomainError, InvalidArgument
from phylactery_chassis.identity import Authenticator, Principal, bind_principal, refuse_doubled
from phylactery_chassis.ids import new_id
from phylactery_chassis.logs import get_logger
from phylactery_chassis.status import internal_status, to_status

_OPEN_TO_ALL = ("/grpc.health.v1.Health/",)
"""Health alone is answered without identity or span: probes carry none, and it tells nothing but up or down."""

_log = get_logger("rpc")
_duration = telemetry.meter().create_histogram(semconv.RPC_SERVER_DURATION, unit="s")
_running = 0
_deadline: ContextVar[float | None] = ContextVar("phylactery_deadline", default=None)

_SERVER_FAULTS = {"UNKNOWN", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS"}
"""The codes that are the server's fault, by OpenTelemetry's gRPC conventions."""

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Body = Callable[[], Awaitable[Any]]


def remaining_seconds() -> float | None:
    """Answers how long the call being served may still take, None for no bound."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.monotonic()


def running_calls() -> int:
    """Answers how many calls of one request and one answer this process is serving."""
    return _running


class _Undecodable:
    """Stands for a message that is no protobuf of the expected type, invalid UTF-8 included."""


_UNDECODABLE = _Undecodable()


def _tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Answers a deserializer that marks a broken message instead of making the call INTERNAL."""
    if deserialize is None:
        return None

    def decode(data: bytes) -> Any:
        try:
            return deserialize(data)
        except (DecodeError, UnicodeDecodeError, ValueError):
            return _UNDECODABLE

    return decode


def _decoded(request: Any) -> Any:
    if request is _UNDECODABLE:
        raise InvalidArgument(
            "INVALID_REQUEST", "the message is not a valid request of this RPC; text fields must be valid UTF-8"
        )
    return request


async def _decoded_stream(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    async for request in requests:
        yield _decoded(request)


class ServerInterceptor(aio.ServerInterceptor):
    """Serves every call of one service; see the module."""

    def __init__(self, service: str, authenticator: Authenticator) -> None:
        self._service, self._authenticator = service, authenticator
        self._wrapped: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Answers the method's handler, wrapped once for all its calls, whichever of the four kinds it is."""
        method: str = handler_call_details.method
        known = self._wrapped.get(method)
        if known is not None:
            return known
        handler = await continuation(handler_call_details)
        if handler is None or method.startswith(_OPEN_TO_ALL):
            return handler
        wrapped = self._wrapped[method] = self._wrap(method, handler)
        return wrapped

    def _wrap(self, method: str, handler: Handler) -> Handler:
        kind = "stream" if handler.request_streaming else "unary"
        answer = "stream" if handler.response_streaming else "unary"
        inner: Any = getattr(handler, f"{kind}_{answer}")

        async def single(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            global _running  # noqa: PLW0603 - one process serves one service, on one event loop
            _running += 1
            try:
                return await self._serve(method, context, lambda: inner(_decoded(request), context))
            finally:
                _running -= 1

        async def streamed(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            async def body() -> Any:
                given = _decoded_stream(request) if handler.request_streaming else _decoded(request)
                if not handler.response_streaming:
                    return await inner(given, context)
                async for response in inner(given, context):
                    await context.write(response)
                return None

            return await self._serve(method, context, body)

        make = getattr(grpc, f"{kind}_{answer}_rpc_method_handler")
        wrapped: Handler = make(
            streamed if "stream" in (kind, answer) else single,
            request_deserializer=_tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )
        return wrapped

    async def _serve(self, method: str, context: aio.ServicerContext[Any, Any], body: Body) -> Any:
        started = time.perf_counter()
        code, failure, response = "OK", None, None
        given = context.invocation_metadata() or ()
        metadata = {key: value for key, value in given if isinstance(value, str)}
        name = method[1:]
        with telemetry.span(
            name,
            kind=SpanKind.SERVER,
            parent=telemetry.extract(metadata),
            attributes={semconv.RPC_SYSTEM: "grpc", semconv.RPC_METHOD: name},
            ends=False,
        ) as span:
            principal: Principal | None = None
            try:
                left = context.time_remaining()
                _deadline.set(None if left is None else time.monotonic() + left)
                if len(metadata) != len(given):
                    refuse_doubled(key for key, _ in given)
                principal = self._authenticator.authenticate(metadata)
                with bind_principal(principal):
                    response = await body()
            except DomainError as error:
                code, failure = error.code, to_status(error, self._service)
                span.set_attribute(semconv.ERROR_TYPE, error.reason)
            except asyncio.CancelledError:
                self._record(method, "CANCELLED", time.perf_counter() - started, span, principal)
                raise
            except aio.AbortError:
                self._record(method, _code_of(context), time.perf_counter() - started, span, principal)
                raise
            except Exception as error:  # noqa: BLE001 - whatever it is, its text must not reach the client
                code, failure = "INTERNAL", self._unmapped(method, error)
                span.set_attribute(semconv.ERROR_TYPE, type(error).__name__)
            self._record_soon(method, code, time.perf_counter() - started, span, principal)
        if failure is not None:
            await context.abort_with_status(failure)
        return response

    def _unmapped(self, method: str, error: Exception) -> grpc.Status:
        """Logs where it happened, not what it said: an exception's text can hold a value."""
        error_id = new_id("err")
        frames = [
            f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)
        ]
        _log.error(
            "unmapped exception", method=method, error_id=error_id, error=type(error).__name__, frames=frames[-12:]
        )
        return internal_status(error_id, self._service)

    def _record_soon(self, method: str, code: str, seconds: float, span: Span, principal: Principal | None) -> None:
        """Records a call as it ended now, in the next turn of the loop: its answer is on the way by then.

        gRPC takes the answer before it waits for anything, and whoever asked has better to do than wait for our lines.
        """
        end_ns = time.time_ns()

        def record() -> None:
            self._record(method, code, seconds, span, principal)
            span.end(end_ns)

        asyncio.get_running_loop().call_soon(record)

    def _record(self, method: str, code: str, seconds: float, span: Span, principal: Principal | None) -> None:
        span.set_attribute(semconv.RPC_STATUS, code)
        if code in _SERVER_FAULTS:
            span.set_status(Status(StatusCode.ERROR))
        _duration.record(seconds, {semconv.RPC_METHOD: method.lstrip("/"), semconv.RPC_STATUS: code})
        who = {"subject": principal.subject, "tenant": principal.tenant, "actor": principal.actor} if principal else {}
        level = _log.warning if code in _SERVER_FAULTS else _log.info
        level("rpc", method=method, status=code, ms=round(seconds * 1_000, 2), **who)


def _code_of(context: aio.ServicerContext[Any, Any]) -> str:
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else "UNKNOWN"
