"""Client channels: trace context, client spans, deadline propagation, retries of what was not served."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any, Self, TypeAlias

import grpc
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phylactery_chassis.auth.identity import AUTHORIZATION, LEVEL_HEADER, SUBJECT_HEADER, TENANT_HEADER, Principal
from phylactery_chassis.rpc.interceptor import remaining_seconds
from phylactery_chassis.rpc.proxies import proxy_options
from phylactery_chassis.telemetry import semconv, telemetry

_MARGIN_SECONDS = 0.05
"""The part of its own deadline that a service keeps for answering its caller."""
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
                    "retryableStatusCodes": ["UNAVAILABLE", "CANCELLED"],  # the latter by a server with too many calls
                },
            }
        ]
    }
)

Metadata = tuple[tuple[str, str], ...]
Token: TypeAlias = str | Callable[[], str]
"""A token, or what returns the present one at each call."""


def call_metadata(principal: Principal, level: str = "") -> Metadata:
    """Return the metadata with which a delegate names its end user; ``level`` as the delegate tells it, or nothing."""
    told = ((LEVEL_HEADER, level),) if level else ()
    return ((SUBJECT_HEADER, principal.subject), (TENANT_HEADER, principal.tenant), *told)


class _Method:
    """One remote method: adds metadata, deadline and span to each call.

    It wraps grpc.aio's own callable. Interceptors would need another task per call, which costs a sixth of a call on
    the client, and one interceptor per kind of method.
    """

    def __init__(self, call: Callable[..., Any], method: str, token: Token, timeout: float | None) -> None:
        self._call, self._name, self._timeout = call, method.lstrip("/"), timeout
        self._attributes: dict[str, telemetry.Attribute] = {semconv.RPC_SYSTEM: "grpc", semconv.RPC_METHOD: self._name}
        self._token = token

    def _begin(self, request: Any, timeout: float | None, metadata: Iterable[tuple[str, str]] | None) -> Any:
        token = self._token if isinstance(self._token, str) else self._token()
        authorization = ((AUTHORIZATION, f"Bearer {token}"),) if token else ()
        return self._call(
            request,
            timeout=self._bound(timeout),
            metadata=(*(metadata or ()), *telemetry.inject().items(), *authorization),
        )

    def _bound(self, timeout: float | None) -> float | None:
        """Return the timeout of a call in seconds: the given one, or less if the current deadline is nearer."""
        given, left = timeout or self._timeout, remaining_seconds()
        if left is None:
            return given
        left = max(0.0, left - _MARGIN_SECONDS)
        return left if given is None else min(given, left)


class _Single(_Method):
    """A method with a unary response."""

    async def __call__(
        self,
        request: Any,
        *,
        timeout: float | None = None,  # noqa: ASYNC109 - gRPC's own parameter, sent to the server
        metadata: Iterable[tuple[str, str]] | None = None,
    ) -> Any:
        """Call the method and return its response. Raise aio.AioRpcError."""
        failure: aio.AioRpcError
        with telemetry.span(self._name, kind=SpanKind.CLIENT, attributes=self._attributes) as span:
            try:
                answer = await self._begin(request, timeout, metadata)
            except aio.AioRpcError as error:
                failure = error  # handled below: the span records its status
                _note(span, failure.code())
            else:
                _note(span, grpc.StatusCode.OK)
                return answer
        raise failure


class _Streamed(_Method):
    """A method with a streaming response. It has no span, because it lasts as long as it is read."""

    def __call__(
        self, request: Any = None, *, timeout: float | None = None, metadata: Iterable[tuple[str, str]] | None = None
    ) -> Any:
        """Call the method and return the stream of its responses."""
        return self._begin(request, timeout, metadata)


def _note(span: Span, code: grpc.StatusCode) -> None:
    span.set_attribute(semconv.RPC_STATUS, code.name)
    if code is not grpc.StatusCode.OK:
        span.set_attribute(semconv.ERROR_TYPE, code.name)
        span.set_status(Status(StatusCode.ERROR))


class ServiceChannel(aio.Channel):
    """A channel that adds identity, trace context and the deadline of the current call to every call."""

    def __init__(self, channel: aio.Channel, token: Token, timeout: float) -> None:
        """Wrap ``channel``; ``timeout`` in seconds bounds each call with a unary response."""
        self._channel, self._token, self._timeout = channel, token, timeout

    def unary_unary(self, method: str, *args: Any, **options: Any) -> Any:
        """Return a callable whose calls are awaited."""
        return _Single(self._channel.unary_unary(method, *args, **options), method, self._token, self._timeout)

    def stream_unary(self, method: str, *args: Any, **options: Any) -> Any:
        """Return a callable that takes an iterator and whose calls are awaited."""
        return _Single(self._channel.stream_unary(method, *args, **options), method, self._token, self._timeout)

    def unary_stream(self, method: str, *args: Any, **options: Any) -> Any:
        """Return a callable whose calls are iterated; only the caller bounds their duration."""
        return _Streamed(self._channel.unary_stream(method, *args, **options), method, self._token, None)

    def stream_stream(self, method: str, *args: Any, **options: Any) -> Any:
        """Return a callable that takes an iterator and whose calls are iterated."""
        return _Streamed(self._channel.stream_stream(method, *args, **options), method, self._token, None)

    async def close(self, grace: float | None = None) -> None:
        """Close the wrapped channel; see aio.Channel."""
        await self._channel.close(grace)

    def get_state(self, try_to_connect: bool = False) -> grpc.ChannelConnectivity:
        """Return the state of the wrapped channel."""
        return self._channel.get_state(try_to_connect)

    async def wait_for_state_change(self, last_observed_state: grpc.ChannelConnectivity) -> None:
        """Wait until the wrapped channel leaves a state."""
        await self._channel.wait_for_state_change(last_observed_state)

    async def channel_ready(self) -> None:
        """Wait until the wrapped channel is ready."""
        await self._channel.channel_ready()

    async def __aenter__(self) -> Self:
        """Return the channel itself; it is closed at the end of the block."""
        return self

    async def __aexit__(self, *_error: object) -> None:
        """Close the channel."""
        await self.close()


def open_channel(target: str, *, token: Token = "", timeout: float = 10.0, own_connection: bool = False) -> aio.Channel:
    """Open a channel to ``target``; ``timeout`` in seconds bounds each call with a unary response.

    The deadline of the call being served bounds it as well. Channels to one target share a connection, and how many
    calls the service lets it have open at once, unless they have their own.
    """
    channel = aio.insecure_channel(
        target,
        options=[
            ("grpc.service_config", _SERVICE_CONFIG),
            ("grpc.enable_retries", 1),
            ("grpc.max_receive_message_length", _MAX_MESSAGE),
            ("grpc.keepalive_time_ms", 30_000),
            ("grpc.use_local_subchannel_pool", int(own_connection)),
            # Reconnect quickly: a service that restarts is found within the retries above, so the next turn works at
            # once.
            ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.min_reconnect_backoff_ms", 1_000),
            ("grpc.max_reconnect_backoff_ms", 300),
            *proxy_options(target),
        ],
    )
    return ServiceChannel(channel, token, timeout)
