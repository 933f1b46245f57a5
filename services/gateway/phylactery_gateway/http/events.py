"""Server-sent events: one message each, heartbeats between them, and a last one that says how the stream ended."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any, Final

from phylactery_chassis.errors import Unavailable
from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from phylactery_gateway.rpc.calls import CallError, HungUpError
from phylactery_gateway.rpc.errors import failure_of
from phylactery_gateway.rpc.services import event_id

HEARTBEAT_SECONDS: Final = 15.0
_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),  # nginx would keep events until it has a page of them
)
_HEARTBEAT: Final = b": heartbeat\n\n"
_END: Final = b"event: end\ndata: {}\n\n"
_STOPPING: Final = Unavailable("GATEWAY_STOPPING", "the gateway stops; continue after the last event's id")

Messages = AsyncGenerator[tuple[object, bytes] | None]


class EventStream:
    """The response that carries a stream of messages. It is an ASGI application of its own.

    The next message is taken from the service only when the client has taken the one before, so that a slow client
    slows the service instead of filling memory.
    """

    def __init__(self, messages: Messages, stopping: asyncio.Event, headers: tuple[tuple[bytes, bytes], ...]) -> None:
        """``messages`` yields None first, once the call is accepted; ``stopping`` ends the stream."""
        self._messages, self._stopping, self._headers = messages, stopping, headers
        self._parts: asyncio.Queue[bytes] = asyncio.Queue(1)

    async def accepted(self) -> EventStream:
        """Wait until the call is accepted and return the stream. Raise CallError or HungUpError."""
        self._accepted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._reading = asyncio.create_task(self._read())
        try:
            await self._accepted
        except BaseException:
            await end(self._reading)
            raise
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events until the stream ends, the client hangs up, or the gateway stops."""
        gone = asyncio.create_task(_gone(Request(scope, receive)))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await send({"type": "http.response.start", "status": 200, "headers": [*_HEADERS, *self._headers]})
            while True:
                part = await self._next(gone, stopping)
                if part is None:
                    return
                last = part == b""
                await send({"type": "http.response.body", "body": part, "more_body": not last})
                if last:
                    return
        finally:
            for task in (gone, stopping, self._reading):
                await end(task)

    async def _next(self, gone: asyncio.Task[None], stopping: asyncio.Task[bool]) -> bytes | None:
        """Return the next part, a heartbeat if none comes, b'' after the last one, None if nobody reads any more."""
        taken = asyncio.create_task(self._parts.get())
        try:
            await asyncio.wait({taken, gone, stopping}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if gone.done():
                return None
            if taken.done():
                return taken.result()
            if stopping.done():
                await end(self._reading)
                while not self._parts.empty():
                    self._parts.get_nowait()
                self._parts.put_nowait(b"")
                return _event(b"error", failure_of(_STOPPING).body())
            return _HEARTBEAT
        finally:
            await end(taken)

    async def _read(self) -> None:
        """Put the events into the queue, one at a time. It is one task, in whose context the call's span is."""
        try:
            async with aclosing(self._messages) as messages:
                async for item in messages:
                    if item is None:
                        self._accepted.set_result(None)
                        continue
                    message, text = item
                    await self._parts.put(_event(b"", text, event_id(message)))
            await self._parts.put(_END)
        except CallError as error:
            if not self._accepted.done():
                self._accepted.set_exception(error)
                return
            await self._parts.put(_event(b"error", error.failure.body()))
        except HungUpError as error:
            if not self._accepted.done():
                self._accepted.set_exception(error)
            return
        await self._parts.put(b"")


def _event(name: bytes, data: bytes, identity: str = "") -> bytes:
    """Return an event; the data is JSON on one line."""
    head = b"event: %s\n" % name if name else b""
    if identity and identity.isprintable():
        head += b"id: %s\n" % identity.encode()
    return head + b"data: %s\n\n" % data


async def _gone(request: Request) -> None:
    """Wait until the client hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, however it ends."""
    task.cancel()
    await asyncio.wait({task})
