"""Webhooks: size, signature over the raw body, rows, and only then the acknowledgement."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.telemetry.semconv import CHANNEL
from phylactery_chassis.telemetry.telemetry import span
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from phylactery_gateway.channels.port import Channel
from phylactery_gateway.http.bodies import TooLargeError, read_body
from phylactery_gateway.metrics import Metrics
from phylactery_gateway.store.inbox import Inbox

_log = get_logger("webhooks")


class Webhooks:
    """The webhook of each channel, at /webhooks/<channel>."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        inbox: Inbox,
        clock: Clock,
        metrics: Metrics,
        *,
        max_bytes: int,
        stored: Callable[[], None],
        healthy: Callable[[], Awaitable[bool]],
    ) -> None:
        """Call ``stored`` when a webhook brought something new."""
        self._channels, self._inbox, self._clock, self._metrics = channels, inbox, clock, metrics
        self._max_bytes, self._stored, self._healthy = max_bytes, stored, healthy

    def routes(self) -> list[Route]:
        """Return the routes."""
        hook = "/webhooks/{channel:str}"
        return [
            Route(hook, self._challenge, methods=["GET"]),
            Route(hook, self._receive, methods=["POST"]),
            Route("/healthz", self._health, methods=["GET"]),
        ]

    async def _challenge(self, request: Request) -> Response:
        channel = self._channels.get(request.path_params["channel"])
        answer = channel.challenge(dict(request.query_params)) if channel else None
        return PlainTextResponse(answer) if answer is not None else Response(status_code=403)

    async def _health(self, _request: Request) -> Response:
        well = await self._healthy()
        return JSONResponse({"status": "SERVING" if well else "NOT_SERVING"}, status_code=200 if well else 503)

    async def _receive(self, request: Request) -> Response:
        channel = self._channels.get(request.path_params["channel"])
        if channel is None:
            return Response(status_code=404)
        begun = time.perf_counter()
        try:
            body = await read_body(request, self._max_bytes)
        except TooLargeError:
            return self._refuse(channel, "too_large", 413)
        except ClientDisconnect:
            return self._refuse(channel, "disconnected", 400)
        if not channel.verify(request.headers, body):
            return self._refuse(channel, "signature", 401)
        with span("gateway.webhook", attributes={CHANNEL: channel.name}):
            elements = channel.parse(body)
            try:
                new = await self._inbox.receive(channel, elements, self._clock.now_us())
            except DomainError as error:
                _log.error("webhook could not be stored; the channel delivers it again", reason=error.reason)
                return self._refuse(channel, "store", 503)
        reach("gateway.received")
        if new:
            self._stored()
        self._metrics.acknowledged(channel.name, (time.perf_counter() - begun) * 1_000, len(elements), new)
        return Response(status_code=200)

    def _refuse(self, channel: Channel, reason: str, status: int) -> Response:
        self._metrics.refused(channel.name, reason)
        if reason == "signature":
            _log.warning("webhook without a valid signature", channel=channel.name)
        return Response(status_code=status)
