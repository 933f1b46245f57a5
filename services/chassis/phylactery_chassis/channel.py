"""Channels to other services: trace context, client spans, deadlines passed on, retries on UNAVAILABLE alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import grpc
from grpc import aio
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from phylactery_chassis import semconv, telemetry
from phylactery_chassis.identity import AUTHORIZATION, SUBJECT_HEADER, TENANT_HEADER, Principal
from phylactery_chassis.interceptor import remaining_seconds

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
    """Answers the metadata with which a delegate names its end user."""
    return ((SUBJECT_HEADER, principal.subject), (TENANT_HEADER, principal.tenant))


class _Interceptor:
    """What the two client interceptors share."""

    def __init__(self, token: str, timeout: float) -> None:
        self._token, self._timeout = token, timeout

    def _prepare(self, details: aio.ClientCallDetails) -> aio.ClientCallDetails:
        metadata = aio.Metadata(*(details.metadata or ()))
        for key, value in telemetry.inject().items():
            metadata.add(key, value)
        if self._token:
            metadata.add(AUTHORIZATION, f"Bearer {self._token}")
        bounds = [details.timeout or self._timeout]
        left = remaining_seconds()
        if left is not None:
            bounds.append(max(0.0, left - _MARGIN_SECONDS))
        return aio.ClientCallDetails(details.method, min(bounds), metadata, details.credentials, details.wait_for_ready)

    async def _unary(self, continuation: Callable[..., Any], details: aio.ClientCallDetails, request: Any) -> Any:
        method = _name(details)
        with telemetry.span(method, kind=SpanKind.CLIENT, attributes=_attributes(method)) as span:
            call = await continuation(self._prepare(details), request)
            _finish(span, await call.code())
        return call


class _UnaryUnary(_Interceptor, aio.UnaryUnaryClientInterceptor):
    async def intercept_unary_unary(
        self, continuation: Callable[..., Any], client_call_details: aio.ClientCallDetails, request: Any
    ) -> Any:
        return await self._unary(continuation, client_call_details, request)


class _StreamUnary(_Interceptor, aio.StreamUnaryClientInterceptor):
    async def intercept_stream_unary(
        self, continuation: Callable[..., Any], client_call_details: aio.ClientCallDetails, request_iterator: Any
    ) -> Any:
        return await self._unary(continuation, client_call_details, request_iterator)


def _name(details: aio.ClientCallDetails) -> str:
    method = details.method
    return (method.decode() if isinstance(method, bytes) else str(method)).lstrip("/")


def _attributes(method: str) -> dict[str, telemetry.Attribute]:
    return {semconv.RPC_SYSTEM: "grpc", semconv.RPC_METHOD: method}


def _finish(span: Span, code: grpc.StatusCode) -> None:
    span.set_attribute(semconv.RPC_STATUS, code.name)
    if code is not grpc.StatusCode.OK:
        span.set_attribute(semconv.ERROR_TYPE, code.name)
        span.set_status(Status(StatusCode.ERROR))


def open_channel(target: str, *, token: str = "", timeout: float = 10.0) -> aio.Channel:
    """Opens a channel to target; timeout in seconds bounds each call, as does the deadline of the call being served."""
    interceptors = [kind(token, timeout) for kind in (_UnaryUnary, _StreamUnary)]
    return aio.insecure_channel(
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
        interceptors=interceptors,
    )
