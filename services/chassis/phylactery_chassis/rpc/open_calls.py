"""Calls without authentication: health checks, and all methods of the admin port.

They are bounded per host of origin, separately from the service's own calls, and a request that does not arrive in time
is abandoned, so that one caller cannot block others.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final, TypeAlias

import grpc
from grpc import aio

from phylactery_chassis.errors import DomainError, InvalidArgument
from phylactery_chassis.rpc.decoding import decoded, decoded_stream, drain, tolerant
from phylactery_chassis.rpc.status import internal_status, to_status
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id
from phylactery_chassis.util.limits import Places, host_of

_REQUEST_SECONDS: Final = 5.0
_STREAMS_OF_A_HOST, _STREAMS = 32, 256
_CALLS_OF_A_HOST, _CALLS = 64, 512

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any]"

_log = get_logger("rpc")


class OpenCalls:
    """Wraps methods that need no authentication. Each method has its own slots."""

    def __init__(self, service: str) -> None:
        """``service`` is the domain of its errors."""
        self._service = service

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
                give_back = places.take(host_of(context.peer()))
                try:
                    given = decoded_stream(requests) if handler.request_streaming else await _only(requests)
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
            request_deserializer=tolerant(handler.request_deserializer),
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


async def _only(requests: AsyncIterator[Any]) -> Any:
    """Return the only request of a call. Raise InvalidArgument if none arrives in time."""
    try:
        async with asyncio.timeout(_REQUEST_SECONDS):
            return decoded(await anext(requests))
    except (TimeoutError, StopAsyncIteration):
        raise InvalidArgument("INVALID_REQUEST", "the call contains no request; send one message") from None


async def _answer(inner: Any, given: Any, context: aio.ServicerContext[Any, Any], *, streams: bool) -> Any:
    answer = inner(given, context)
    if not streams or not hasattr(answer, "__aiter__"):
        return await answer  # a streaming method writes to the context itself
    async for response in answer:
        await context.write(response)
    return None
