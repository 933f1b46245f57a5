"""The server interceptor: span, log line, metric, identity, deadline and error mapping in a single pass."""

from __future__ import annotations

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeAlias

import grpc
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phylactery_chassis.auth.identity import Authenticator, Principal, bind_principal, refuse_doubled
from phylactery_chassis.errors import DomainError, Unauthenticated
from phylactery_chassis.rpc.decoding import decoded, decoded_stream, drain, tolerant
from phylactery_chassis.rpc.open_calls import OpenCalls
from phylactery_chassis.rpc.status import internal_status, to_status
from phylactery_chassis.telemetry import calls, semconv, telemetry
from phylactery_chassis.telemetry.instruments import RPC_SECONDS, meter
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.limits import Places

_OPEN_TO_ALL = ("/grpc.health.v1.Health/",)
"""Only health is served without identity or span: probes carry none, and it reveals only whether the service is up."""

_log = get_logger("rpc")
_duration = meter().create_histogram(
    semconv.RPC_SERVER_DURATION,
    unit="s",
    description="calls served, streams to their end",
    explicit_bucket_boundaries_advisory=RPC_SECONDS,
)
_deadline: ContextVar[float | None] = ContextVar("phylactery_deadline", default=None)

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"
Body = Callable[[], Awaitable[Any]]


def remaining_seconds() -> float | None:
    """Return the remaining seconds of the call being served, None if it has no deadline."""
    deadline = _deadline.get()
    return None if deadline is None else deadline - time.monotonic()


@dataclass(slots=True)
class RunningCalls:
    """The number of unary calls a service is serving."""

    count: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """How many calls a service serves at once: unary calls, and streams of each kind."""

    calls: int = 1_000
    calls_of_a_caller: int = 500
    streams: int = 1_000
    streams_of_a_caller: int = 200


@dataclass(frozen=True, slots=True)
class _Call:
    """What is known of a call before its request is read. ``fault`` is the reason for refusing it."""

    metadata: Mapping[str, str]
    principal: Principal | None
    fault: DomainError | None = None


@dataclass(frozen=True, slots=True)
class _Method:
    """A served method. A method open to all has no slots here."""

    handler: Handler
    refusal: Handler | None = None
    places: Places | None = None
    streams: bool = False


_call: ContextVar[_Call] = ContextVar("phylactery_call")


class ServerInterceptor(aio.ServerInterceptor):
    """Serves every call of one service: authenticates, limits, traces, measures and maps errors."""

    def __init__(
        self,
        service: str,
        authenticator: Authenticator,
        limits: Limits | None = None,
        running: RunningCalls | None = None,
    ) -> None:
        self._service, self._authenticator, self._limits = service, authenticator, limits or Limits()
        self._running = running or RunningCalls()
        self._methods: dict[str, _Method] = {}
        self._open = OpenCalls(service)
        self._calls = Places("calls", total=self._limits.calls, each=self._limits.calls_of_a_caller)
        self._streams: dict[asyncio.Task[Any], tuple[str, Principal | None]] = {}
        self._withdrawn: set[asyncio.Task[Any]] = set()

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the method's handler, wrapped once for all its calls, for all four kinds of method.

        A call without a known identity or a free slot is refused before its request is read, so that requests that
        never arrive cannot block others.
        """
        name: str = handler_call_details.method
        method = self._methods.get(name)
        if method is None:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            method = self._methods[name] = self._wrap(name, handler)
        if method.places is None:
            return method.handler
        call = self._begin(method, handler_call_details.invocation_metadata or ())
        _call.set(call)
        return method.handler if call.fault is None else method.refusal

    def count_from_zero(self, methods: Iterable[str]) -> None:
        """Export the calls of these methods as 0 before the first one, except of those that are open to all."""
        calls.start_at_zero(name.lstrip("/") for name in methods if not name.startswith(_OPEN_TO_ALL))

    def end_withdrawn(self) -> None:
        """End the streams whose identity was withdrawn, changed or has expired since they began."""
        for task, (credential, granted) in list(self._streams.items()):
            if self._authenticator.granted(credential) != granted:
                self._withdrawn.add(task)
                task.cancel()

    def _begin(self, method: _Method, given: Sequence[tuple[str, str | bytes]]) -> _Call:
        """Authenticate the caller and take a slot that is released when the call ends."""
        metadata = {key: value for key, value in given if isinstance(value, str)}
        principal: Principal | None = None
        try:
            if len(metadata) != len(given):
                refuse_doubled(key for key, _ in given)
            principal = self._authenticator.authenticate(metadata)
            assert method.places is not None, "open methods do not come here"
            give_back = method.places.take((principal.tenant, principal.subject))
        except DomainError as fault:
            return _Call(metadata, principal, fault)
        task = asyncio.current_task()
        assert task is not None, "gRPC serves every call in a task"
        if method.streams:
            credential = principal.credential_hash
            self._streams[task] = credential, self._authenticator.granted(credential)

        def end(task: asyncio.Task[Any]) -> None:
            give_back()
            self._streams.pop(task, None)
            self._withdrawn.discard(task)

        task.add_done_callback(end)
        return _Call(metadata, principal)

    def _wrap(self, method: str, handler: Handler) -> _Method:
        if method.startswith(_OPEN_TO_ALL):
            return _Method(self._open.wrap(method, handler))
        kind = "stream" if handler.request_streaming else "unary"
        answer = "stream" if handler.response_streaming else "unary"
        inner: Any = getattr(handler, f"{kind}_{answer}")

        async def single(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            self._running.count += 1
            try:
                return await self._serve(method, context, lambda: inner(decoded(request), context))
            finally:
                self._running.count -= 1

        async def streamed(request: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            async def body() -> Any:
                given = decoded_stream(request) if handler.request_streaming else decoded(request)
                if not handler.response_streaming:
                    return await inner(given, context)
                async for response in inner(given, context):
                    await context.write(response)
                return None

            return await self._serve(method, context, body, request if handler.request_streaming else None)

        async def refused(_requests: Any, context: aio.ServicerContext[Any, Any]) -> Any:
            return await self._serve(method, context, _nothing)

        make = getattr(grpc, f"{kind}_{answer}_rpc_method_handler")
        wrapped: Handler = make(
            streamed if "stream" in (kind, answer) else single,
            request_deserializer=tolerant(handler.request_deserializer),
            response_serializer=handler.response_serializer,
        )
        refusal: Handler = getattr(grpc, f"stream_{answer}_rpc_method_handler")(refused)
        limits = self._limits
        places = (
            Places("streams of this kind", total=limits.streams, each=limits.streams_of_a_caller)
            if handler.response_streaming
            else self._calls
        )
        return _Method(wrapped, refusal, places, handler.response_streaming)

    async def _serve(
        self,
        method: str,
        context: aio.ServicerContext[Any, Any],
        body: Body,
        requests: AsyncIterator[Any] | None = None,
    ) -> Any:
        started = time.perf_counter()
        code, failure, response = "OK", None, None
        call = _call.get()
        principal = call.principal
        name = method[1:]
        with telemetry.span(
            name,
            kind=SpanKind.SERVER,
            parent=telemetry.extract(call.metadata),
            attributes={semconv.RPC_SYSTEM: "grpc", semconv.RPC_METHOD: name},
            ends=False,
        ) as span:
            try:
                left = context.time_remaining()
                _deadline.set(None if left is None else time.monotonic() + left)
                if call.fault is not None:
                    raise call.fault  # noqa: TRY301 - recorded and answered like any other error
                assert principal is not None, "a call without an identity has a fault"
                with bind_principal(principal):
                    response = await body()
            except DomainError as error:
                code, failure = error.code, to_status(error, self._service)
                span.set_attribute(semconv.ERROR_TYPE, error.reason)
            except asyncio.CancelledError:
                fault = self._withdrawal()
                if fault is not None:
                    code, failure = fault.code, to_status(fault, self._service)
                    span.set_attribute(semconv.ERROR_TYPE, fault.reason)
                else:
                    self._record(method, "CANCELLED", time.perf_counter() - started, span, principal)
                    raise
            except aio.AbortError:
                self._record(method, _code_of(context), time.perf_counter() - started, span, principal)
                raise
            except Exception as error:  # noqa: BLE001 - an exception's text must not reach the client
                code, failure = "INTERNAL", self._unmapped(method, error)
                span.set_attribute(semconv.ERROR_TYPE, type(error).__name__)
            self._record_soon(method, code, time.perf_counter() - started, span, principal)
        if failure is not None:
            if requests is not None:
                await drain(requests)
            await context.abort_with_status(failure)
        return response

    def _withdrawal(self) -> DomainError | None:
        """Return why the server cancelled the current stream, None if its caller hung up."""
        task = asyncio.current_task()
        if task is None or task not in self._withdrawn:
            return None
        task.uncancel()
        return Unauthenticated(
            "UNAUTHENTICATED", "this token was withdrawn, changed or has expired since the stream began; sign in again"
        )

    def _unmapped(self, method: str, error: Exception) -> grpc.Status:
        """Log where an unexpected error was raised, not its text, which can contain a value."""
        error_id = new_id("err")
        frames = [
            f"{f.filename.rsplit('/', 1)[-1]}:{f.lineno} {f.name}" for f in traceback.extract_tb(error.__traceback__)
        ]
        _log.error(
            "unmapped exception", method=method, error_id=error_id, error=type(error).__name__, frames=frames[-12:]
        )
        return internal_status(error_id, self._service)

    def _record_soon(self, method: str, code: str, seconds: float, span: Span, principal: Principal | None) -> None:
        """Record a finished call in the next iteration of the loop, after its response is on the way.

        gRPC takes the response before it waits for anything, so logging does not delay the caller.
        """
        end_ns = time.time_ns()

        def record() -> None:
            self._record(method, code, seconds, span, principal)
            span.end(end_ns)

        asyncio.get_running_loop().call_soon(record)

    def _record(self, method: str, code: str, seconds: float, span: Span, principal: Principal | None) -> None:
        span.set_attribute(semconv.RPC_STATUS, code)
        if code in calls.SERVER_FAULTS:
            span.set_status(Status(StatusCode.ERROR))
        name = method.lstrip("/")
        _duration.record(seconds, {semconv.RPC_METHOD: name, semconv.RPC_STATUS: code})
        calls.count(name, code)
        who = {"subject": principal.subject, "tenant": principal.tenant, "actor": principal.actor} if principal else {}
        level = _log.warning if code in calls.SERVER_FAULTS else _log.info
        level("rpc", method=method, status=code, ms=round(seconds * 1_000, 2), **who)


async def _nothing() -> None:
    """Do nothing: the call was already refused."""


def _code_of(context: aio.ServicerContext[Any, Any]) -> str:
    code = context.code()
    return code.name if isinstance(code, grpc.StatusCode) else "UNKNOWN"
