"""Channels to other services: trace context, client spans, deadlines passed on, retries on UNAVAILABLE alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Self

import grpc
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phylactery_chassis.auth.identity import AUTHORIZATION, SUBJECT_HEADER, TENANT_HEADER, Principal
from phylactery_chassis.rpc.interceptor import remaining_seconds
from phylactery_chassis.telemetry import semconv, telemetry

_MARGIN_SECONDS = 0.05
"""What a service keeps of its own deadline to answer its caller."""
_MAX_MESSAGE = 64 * 1024 * 1024
_SERVICE_CONFIG = json.dumps(
    {
        "methodConfig": [
            {
                "name": [{}],
                "retryPolicy": {
                    "maxAttempts": 5,
                    "initialBackoff": "0.1s",
                    "maxBackoff": "1s",
                    "backoffMultiplier": 2,
                    "retryableStatusCodes": ["UNAVAILABLE"],
                },
            }
        ]
    }
)

Metadata = tuple[tuple[str, str], ...]


def call_metadata(principal: Principal) -> Metadata:
    """Return the metadata with which a delegate names its end user."""
    return ((SUBJECT_HEADER, principal.subject), (TENANT_HEADER, principal.tenant))


class _Method:
    """One method of a service: the metadata, the deadline and the span of every call of it.

    It stands before grpc.aio's own callable. Interceptors would do the same with another task for each call, which
    takes a sixth of what a call costs its caller, and need one more for each kind of method.
    """

    def __init__(self, call: Callable[..., Any], method: str, token: str, timeout: float | None) -> None:
        self._call, self._name, self._timeout = call, method.lstrip("/"), timeout
        self._attributes: dict[str, telemetry.Attribute] = {semconv.RPC_SYSTEM: "grpc", semconv.RPC_METHOD: self._name}
        self._authorization = ((AUTHORIZATION, f"Bearer {token}"),) if token else ()

    def _begin(self, request: Any, timeout: float | None, metadata: Iterable[tuple[str, str]] | None) -> Any:
        return self._call(
            request,
            timeout=self._bound(timeout),
            metadata=(*(metadata or ()), *telemetry.inject().items(), *self._authorization),
        )

    def _bound(self, timeout: float | None) -> float | None:
        """Return how long a call may take, in seconds: as long as is given, and as the call being served has left."""
        given, left = timeout or self._timeout, remaining_seconds()
        if left is None:
            return given
        left = max(0.0, left - _MARGIN_SECONDS)
        return left if given is None else min(given, left)


class _Single(_Method):
    """A method that answers one message."""

    async def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - gRPC's own, which the server is told of
        metadata: Iterable[tuple[str, str]] | None = None,
    ) -> Any:
        """Call the method and return its message. Raise aio.AioRpcError."""
        failure: aio.AioRpcError
        with telemetry.span(self._name, kind=SpanKind.CLIENT, attributes=self._attributes) as span:
            try:
                answer = await self._begin(request, timeout, metadata)
            except aio.AioRpcError as error:
                failure = error  # told below: the span knows it by its status
                _note(span, failure.code())
            else:
                _note(span, grpc.StatusCode.OK)
                return answer
        raise failure


class _Streamed(_Method):
    """A method that answers a stream, which has no span: it lasts as long as it is read."""

    def __call__(
        self, request: Any = None, *, timeout: float | None = None, metadata: Iterable[tuple[str, str]] | None = None
    ) -> Any:
        """Call the method and return the stream of its messages."""
        return self._begin(request, timeout, metadata)


def _note(span: Span, code: grpc.StatusCode) -> None:
    span.set_attribute(semconv.RPC_STATUS, code.name)
    if code is not grpc.StatusCode.OK:
        span.set_attribute(semconv.ERROR_TYPE, code.name)
        span.set_status(Status(StatusCode.ERROR))


class ServiceChannel(aio.Channel):
    """A channel whose every call says who calls, in which trace, and ends with the call being served."""

    def __init__(self, channel: aio.Channel, token: str, timeout: float) -> None:
        """Take the channel below; ``timeout`` in seconds bounds a call that answers one message."""
        self._channel, self._token, self._timeout = channel, token, timeout

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        """Return the method, whose calls are awaited."""
        return _Single(self._channel.unary_unary(method, *args, **options), method, self._token, self._timeout)

    def stream_unary(self, method: str, *args: Any, **options: Any) -> Any:
        """Return the method, whose calls take an iterator and are awaited."""
        return _Single(self._channel.stream_unary(method, *args, **options), method, self._token, self._timeout)

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        """Return the method, whose calls are iterated; nothing but their caller bounds them."""
        return _Streamed(self._channel.unary_stream(method, *args, **options), method, self._token, None)

    def stream_stream(self, method: str, *args: Any, **options: Any) -> Any:
        """Return the method, whose calls take an iterator and are iterated."""
        return _Streamed(self._channel.stream_stream(method, *args, **options), method, self._token, None)

    async def close(self, grace: float | None = None) -> None:
        """Close the channel below; see aio.Channel."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return the state of the channel below."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait for another state of the channel below."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the channel below is ready."""
        await self._channel.channel_ready()

    async def __aenter__(self) -> Self:
        """Return itself; it is closed with the block."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close it."""
        await self.close()


def open_channel(target: str, *, token: str = "", timeout: float = 10.0) -> aio.Channel:
    """Open a channel to target; timeout in seconds bounds each call that answers one message.

    So does the deadline of the call being served.
    """
    channel = aio.insecure_channel(
        target,
        options=[
            ("grpc.service_config", _SERVICE_CONFIG),
            ("grpc.enable_retries", 1),
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.keepalive_time_ms", 30_000),
            # A service that comes back is found within the retries above, so the next turn works at once.
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 1_000),
            ("grpc.max_reconnect_backoff_ms", 300),
        ],
    )
    return ServiceChannel(channel, token, timeout)
