"""Connections of the public port: how many there are, how long each may take, and which gives way to a new one.

Whoever reaches the port may open connections, so none is waited for longer than its time, what is refused is not read
to its end, and where all places are taken the one that waits longest without a whole request gives its place up. So a
new connection, which may be a channel's, always gets one.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import h11
from phylactery_chassis.telemetry.logs import Sampled, get_logger
from phylactery_chassis.util.limits import network_of
from starlette.types import Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEAD_BYTES: Final = 16 * 1024
"""The most bytes of a head; the services take as much metadata of a call."""
_READ_BYTES: Final = 32 * 1024
"""The most bytes that are read of a connection at once, and held of requests behind the one that is served."""
WRITE_SECONDS: Final = 60.0
"""How long a client may take for what was sent to it. One that takes nothing keeps a place, and a service's stream."""
_LINGER_SECONDS, _LINGER_BYTES = 1.0, 1024 * 1024
"""How much of a refused request is read and dropped, so that its client sees the response: unread bytes would reset the
connection before."""
_CLOSE: Final = (b"connection", b"close")
_CLOSED: Final = "closed"


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections there are at once, and how long the head of a request may take."""

    connections: int = 2_048
    head_seconds: float = 10.0


class Connections:
    """The open connections of a server."""

    def __init__(self, limits: ConnectionLimits, refused: Callable[[str], None]) -> None:
        """Call ``refused`` with the reason for each connection that is ended early."""
        self.limits, self._refused, self._log = limits, refused, Sampled(get_logger("http"))
        self._open: set[Connection] = set()

    def add(self, new: Connection) -> None:
        """Give a new connection a place; where none is left, one that sent no whole request gives up its own."""
        self._open.add(new)
        if len(self._open) <= self.limits.connections:
            return
        # first of the address with the most: behind a proxy that is everybody's, and the one that waits longest counts
        waiting = [one for one in self._open if one.waits]
        of_address = Counter(one.address for one in waiting)
        last = max(waiting, key=lambda one: (of_address[one.address], -one.since), default=new)
        self._open.discard(last)
        last.end("full")

    def remove(self, one: Connection) -> None:
        """Forget a connection that is closed."""
        self._open.discard(one)

    def note(self, reason: str) -> None:
        """Count a connection that is ended early, and say so from time to time."""
        self._refused(reason)
        self._log.warning("connection ended early", key=reason, reason=reason)

    def hang_up(self) -> None:
        """End all connections without waiting for their clients."""
        for one in list(self._open):
            one.transport.abort()


class Connection(H11Protocol):
    """uvicorn's connection with deadlines, and with an end for requests that are not read."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """``options`` are uvicorn's own."""
        super().__init__(**options)
        self._connections, self.logger = connections, _Quiet(self.logger, connections)  # type: ignore[assignment]
        self._application, self.app = self.app, self._respond
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._dropped = -1
        """How many bytes were dropped of a request that is not read to its end; -1 before."""
        self.since = self.loop.time()
        self.address = ""

    @property
    def waits(self) -> bool:
        """True if the client has not sent a whole request, or takes nothing of the response to one."""
        cycle = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or "write_slow" in self._timers

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a place, and wait for a head."""
        if hasattr(transport, "max_size"):
            transport.max_size = _READ_BYTES  # 256 KiB otherwise, held of each connection that sends ahead
        super().connection_made(transport)
        self.transport = _Lingering(transport, self)  # type: ignore[assignment]
        self.address = network_of(self.client[0]) if self.client else ""
        self._await_head()
        self._connections.add(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Give the place back."""
        self._connections.remove(self)
        super().connection_lost(exc)
        for name in list(self._timers):
            self.stop_timer(name)

    def data_received(self, data: bytes) -> None:
        """Read what came, or drop it where the response is sent already."""
        if self._dropped >= 0:
            self._dropped += len(data)
            if self._dropped > _LINGER_BYTES:
                self.transport.abort()
            return
        super().data_received(data)
        self._await_head()

    def on_response_complete(self) -> None:
        """Wait for the next head, whose time begins with its first byte."""
        self.since = self.loop.time()
        super().on_response_complete()
        self._await_head()

    def send_400_response(self, msg: str) -> None:
        """Refuse what is not HTTP. In the middle of a response there is nothing more to say."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.transport.is_closing():
            super().send_400_response(msg)
            if self.cycle is not None and not self.cycle.response_complete:  # whoever serves it waits for its body
                self.cycle.disconnected = True
                self.cycle.message_event.set()
        else:
            self.transport.abort()

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent."""
        super().pause_writing()
        self.start_timer("write_slow", WRITE_SECONDS)

    def resume_writing(self) -> None:
        """Go on."""
        super().resume_writing()
        self.stop_timer("write_slow")

    def start_timer(self, name: str, seconds: float) -> None:
        """End the connection after a time, for the reason that is the timer's name, unless that timer runs already."""
        if name not in self._timers:
            self._timers[name] = self.loop.call_later(seconds, self.end, name)

    def stop_timer(self, name: str) -> None:
        """Let the connection be."""
        if (timer := self._timers.pop(name, None)) is not None:
            timer.cancel()

    def end(self, reason: str) -> None:
        """End the connection at once."""
        if reason != _CLOSED:
            self._connections.note(reason)
        self.transport.abort()

    def drop_the_rest(self) -> bool:
        """Begin to drop what still comes of a request; return False if none is being sent."""
        if self.conn.their_state not in (h11.SEND_BODY, h11.ERROR):
            return False
        self._dropped = 0
        return True

    def _await_head(self) -> None:
        """Bound the time of a head that has begun, and of the first one of a connection."""
        busy = self.cycle is not None and not self.cycle.response_complete
        if busy or not (self.cycle is None or self.conn.trailing_data[0]):
            self.stop_timer("head_slow")
        elif not self.transport.is_closing():
            self.start_timer("head_slow", self._connections.limits.head_seconds)

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request. A response before the end of its request closes the connection: the rest is not read."""

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start" and self.conn.their_state is h11.SEND_BODY:
                headers = [one for one in message.get("headers", ()) if one[0] != _CLOSE[0]]
                message = {**message, "headers": [*headers, _CLOSE]}
            await send(message)

        await self._application(scope, receive, sending)


class _Lingering:
    """A transport that, closed before its request was read, first lets the client see the response."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport, self._connection, self._closing = transport, connection, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self._closing or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        self._closing = True
        if self._connection.drop_the_rest():
            self._connection.start_timer(_CLOSED, _LINGER_SECONDS)
            try:
                self._transport.write_eof()
                self._transport.resume_reading()
            except OSError:  # its client has reset it already
                self._transport.abort()
        else:
            self._connection.start_timer(_CLOSED, WRITE_SECONDS)  # its client may take nothing of what is still sent
            self._transport.close()


class _Quiet(logging.LoggerAdapter[logging.Logger]):
    """uvicorn's log, in which warnings, which strangers cause, are counted and sampled."""

    def __init__(self, logger: logging.Logger, connections: Connections) -> None:
        super().__init__(logger, {})
        self._connections = connections

    @property
    def level(self) -> int:
        return self.logger.level

    def warning(self, msg: object, *_args: object, **_options: Any) -> None:
        self._connections.note("malformed" if str(msg).startswith("Invalid HTTP") else "not_served")
