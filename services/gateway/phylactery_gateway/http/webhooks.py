"""Webhooks: what the headers show, the signature over the raw body as it arrives, rows, then the acknowledgement."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Final

from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import Sampled, get_logger
from phylactery_chassis.telemetry.semconv import CHANNEL
from phylactery_chassis.telemetry.telemetry import span
from phylactery_chassis.util.clock import Clock
from phylactery_chassis.util.crashpoints import reach
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from phylactery_gateway.channels.port import Channel
from phylactery_gateway.http.bodies import Bodies, BodyError
from phylactery_gateway.metrics import Metrics
from phylactery_gateway.store.backlog import Backlog
from phylactery_gateway.store.inbox import AT_ONCE, Inbox

_LARGE_BYTES: Final = 64 * 1024
"""A webhook of more bytes is not even parsed while the channel waits."""
_STATUS: Final = {
    "too_large": 413,
    "too_slow": 408,
    "no_room": 503,
    "disconnected": 400,
    "signature": 401,
    "store": 503,
}

_log = get_logger("webhooks")


class _UnsignedError(BodyError):
    reason = "signature"


class Webhooks:
    """The webhook of each channel, at /webhooks/<channel>."""

    def __init__(
        self,
        channels: Mapping[str, Channel],
        inbox: Inbox,
        backlog: Backlog,
        clock: Clock,
        metrics: Metrics,
        *,
        bodies: Bodies,
        max_bytes: int,
        stored: Callable[[], None],
        waits: Callable[[], None],
    ) -> None:
        """Call ``stored`` when a webhook brought something new, ``waits`` when one is to be read later."""
        self._channels, self._inbox, self._backlog, self._bodies = channels, inbox, backlog, bodies
        self._clock, self._metrics, self._refused = clock, metrics, Sampled(_log)
        self._max_bytes, self._stored, self._waits = max_bytes, stored, waits

    def routes(self) -> list[Route]:
        """Return the routes."""
        hook = "/webhooks/{channel:str}"
        return [Route(hook, self._challenge, methods=["GET"]), Route(hook, self._receive, methods=["POST"])]

    async def _challenge(self, request: Request) -> Response:
        channel = self._channels.get(request.path_params["channel"])
        answer = channel.challenge(dict(request.query_params)) if channel else None
        return PlainTextResponse(answer) if answer is not None else Response(status_code=403)

    async def _receive(self, request: Request) -> Response:
        channel = self._channels.get(request.path_params["channel"])
        if channel is None:
            return Response(status_code=404)
        begun = time.perf_counter()
        try:
            elements, new = await self._read(channel, request)
        except BodyError as error:
            return self._refuse(channel, error.reason)
        except ClientDisconnect:
            return self._refuse(channel, "disconnected")
        except DomainError as error:
            _log.error("webhook could not be stored; the channel delivers it again", reason=error.reason)
            return self._refuse(channel, "store")
        self._metrics.acknowledged(channel.name, (time.perf_counter() - begun) * 1_000, elements, new)
        return Response(status_code=200)

    async def _read(self, channel: Channel, request: Request) -> tuple[int, int]:
        """Read a webhook, if its headers allow it to be the channel's, and store it; see _store. Raise BodyError."""
        proof = channel.proof(request.headers)
        if proof is None:
            raise _UnsignedError
        async with self._bodies.read(request, self._max_bytes, proof.update) as body:
            if not proof.holds():
                raise _UnsignedError
            with span("gateway.webhook", attributes={CHANNEL: channel.name}):
                return await self._store(channel, body)

    async def _store(self, channel: Channel, body: bytes) -> tuple[int, int]:
        """Store a webhook durably: its elements, or, where there are many, the webhook itself, to be read afterwards.

        Return how many elements were stored, and how many of them were new. Raise DomainError.
        """
        now_us = self._clock.now_us()
        elements = channel.parse(body) if len(body) <= _LARGE_BYTES else None
        if elements is None or len(elements) > AT_ONCE:
            await self._backlog.add(channel.name, body, now_us)
            reach("gateway.kept")
            self._waits()
            return 0, 0
        new = await self._inbox.receive(channel, elements, now_us)
        reach("gateway.received")
        if new:
            self._stored()
        return len(elements), new

    def _refuse(self, channel: Channel, reason: str) -> Response:
        self._metrics.refused(channel.name, reason)
        if reason == "signature":
            self._refused.warning("webhook without a valid signature", key=channel.name, channel=channel.name)
        return Response(status_code=_STATUS[reason], headers={"connection": "close"})
