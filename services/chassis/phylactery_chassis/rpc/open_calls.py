"""Calls without authentication: health checks, and all methods of the admin port.

They are bounded per host of origin, separately from the service's own calls. A request that does not arrive in time is
abandoned, and the one awaited longest gives way to a new one, so that calls that send nothing block no probe. What
arrives is small or refused: gRPC keeps up to 4 MB of each request that is being read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
from grpc import aio

from phylactery_chassis.errors import DomainError, InvalidArgument, ResourceExhausted
from phylactery_chassis.rpc.decoding import decoded, decoded_stream, drain, tolerant
from phylactery_chassis.rpc.status import internal_status, to_status
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.limits import Places, host_of

_REQUEST_SECONDS: Final = 5.0
_MAX_REQUEST_BYTES: Final = 4 * 1024
"""The maximum size of a request; one of Health or Channelz is a name, or a number."""
_STREAMS_OF_A_HOST, _STREAMS = 32, 256
_CALLS_OF_A_HOST, _CALLS = 64, 512
_AWAITED_OF_A_HOST, _AWAITED = 32, 128

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_log = get_logger("rpc")


class OpenCalls:
    """Wraps methods that need no authentication. Each method has its own slots."""

    def __init__(self, service: str) -> None:
        """``service`` is the domain of its errors."""
        self._service = service
        self._awaited = _AwaitedRequests()

    def wrap(self, method: str, handler: Handler) -> Handler:
        """Return the handler, bounded, that answers an undecodable request with INVALID_ARGUMENT.

        It takes a stream whatever the method takes: grpc.aio would wait for a single request before the call is
        counted.
        """
        answers = "stream" if handler.response_streaming else "unary"
        inner: Any = getattr(handler, f"{'stream' if handler.request_streaming else 'unary'}_{answers}")
        places = (
            Places("streams of this kind", total=_STREAMS, each=_STREAMS_OF_A_HOST, per="host")
            if handler.response_streaming
            else Places("calls of this kind", total=_CALLS, each=_CALLS_OF_A_HOST, per="host")
        )

        async def serve(requests: AsyncIterator[Any], context: aio.ServicerContext[Any, Any]) -> Any:
            try:
                host = host_of(context.peer())
                given = (
                    decoded_stream(requests) if handler.request_streaming else await self._awaited.one(host, requests)
                )
                give_back = places.take(host)
                try:
                    return await _answer(inner, given, context, streams=handler.response_streaming)
                finally:
                    give_back()
            except DomainError as error:
                failure = to_status(error, self._service)
            except (asyncio.CancelledError, aio.AbortError):
                raise
            except Exception as error:  # noqa: BLE001 - an exception's text must not reach the client
                error_id = new_id("err")
                _log.error("unmapped exception", method=method, error_id=error_id, error=type(error).__name__)
                failure = internal_status(error_id, self._service)
            if handler.request_streaming:
                await drain(requests)
            await context.abort_with_status(failure)
            return None

        make = getattr(grpc, f"stream_{answers}_rpc_method_handler")
        wrapped: Handler = make(
            serve,
            request_deserializer=tolerant(handler.request_deserializer, max_bytes=_MAX_REQUEST_BYTES),
            response_serializer=handler.response_serializer,
        )
        return wrapped


class OpenToAll(aio.ServerInterceptor):
    """The interceptor of a port where no call needs authentication."""

    def __init__(self, service: str) -> None:
        self._open = OpenCalls(service)
        self._wrapped: dict[str, Handler] = {}

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler | None]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler | None:
        """Return the method's handler, wrapped once for all its calls."""
        method: str = handler_call_details.method
        if method not in self._wrapped:
            handler = await continuation(handler_call_details)
            if handler is None:
                return None
            self._wrapped[method] = self._open.wrap(method, handler)
        return self._wrapped[method]


class _AwaitedRequests:
    """The requests of a port that are being read, of all its methods that take a single message."""

    def __init__(self) -> None:
        self._of_hosts: dict[asyncio.Timeout, str] = {}

    async def one(self, host: str, requests: AsyncIterator[Any]) -> Any:
        """Return the only request of a call from a host.

        Raise InvalidArgument if none arrives in time, and ResourceExhausted if newer calls needed the place.
        """
        evicted = False
        limit = asyncio.timeout(_REQUEST_SECONDS)
        try:
            async with limit:
                self._make_room(host)
                self._of_hosts[limit] = host
                try:
                    return decoded(await anext(requests))
                finally:
                    evicted = self._of_hosts.pop(limit, None) is None
        except (TimeoutError, StopAsyncIteration):
            if evicted:
                raise ResourceExhausted(
                    "TOO_MANY_CALLS",
                    "newer calls needed the place of this one, whose request had not arrived; try again",
                ) from None
            raise InvalidArgument("INVALID_REQUEST", "the call contains no request; send one message") from None

    def _make_room(self, host: str) -> None:
        """End the call awaited longest where all places are taken, of this host if those are its own."""
        everyone, of_host = list(self._of_hosts), [limit for limit, whose in self._of_hosts.items() if whose == host]
        crowd = of_host if len(of_host) >= _AWAITED_OF_A_HOST else everyone if len(everyone) >= _AWAITED else []
        if crowd:
            del self._of_hosts[crowd[0]]
            crowd[0].reschedule(asyncio.get_running_loop().time())


async def _answer(inner: Any, given: Any, context: aio.ServicerContext[Any, Any], *, streams: bool) -> Any:
    answer = inner(given, context)
    if not streams or not hasattr(answer, "__aiter__"):
        return await answer  # a streaming method writes to the context itself
    async for response in answer:
        await context.write(response)
    return None
