"""Bodies of requests: each is bounded in its size and its time, and what is held of all of them in its sum."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

HELD_BYTES: Final = 16 * 1024 * 1024
BODY_SECONDS: Final = 30.0


class BodyError(Exception):
    """A body is not read; ``reason`` is a stable code."""

    reason = "body"


class TooLargeError(BodyError):
    """A body is larger than allowed."""

    reason = "too_large"


class TooSlowError(BodyError):
    """A body did not arrive in its time."""

    reason = "too_slow"


class NoRoomError(BodyError):
    """As much is held of other bodies as may be."""

    reason = "no_room"


@dataclass(slots=True, eq=False)
class _Held:
    """What is held of a body. One that gives way is empty from then on."""

    deadline: asyncio.Timeout
    content: bytearray = field(default_factory=bytearray)
    gave_way: bool = False


class Bodies:
    """Reads the bodies of a port."""

    def __init__(self, most: int = HELD_BYTES, seconds: float = BODY_SECONDS) -> None:
        """Hold at most ``most`` bytes of all bodies together; each may take ``seconds``."""
        self._most, self.seconds = most, seconds
        self._sum = 0
        self._arriving: set[_Held] = set()

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._sum

    @asynccontextmanager
    async def read(
        self, request: Request, max_bytes: int, seen: Callable[[bytes], object] = len
    ) -> AsyncIterator[bytearray]:
        """Hold a request's whole body for the block; ``seen`` gets each part of it as it arrives.

        Where the room is used up, the largest body that still arrives gives way, so that many that are never completed
        keep no small one out. Raise BodyError, or ClientDisconnect if the client hangs up.
        """
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > max_bytes:
            raise TooLargeError
        held = _Held(asyncio.timeout(self.seconds))
        self._arriving.add(held)
        try:
            await self._fill(held, request, max_bytes, seen)
            self._arriving.discard(held)
            yield held.content
        finally:
            self._arriving.discard(held)
            self._sum -= len(held.content)

    async def _fill(self, held: _Held, request: Request, max_bytes: int, seen: Callable[[bytes], object]) -> None:
        try:
            async with held.deadline:
                async for part in request.stream():
                    if held.gave_way:
                        raise NoRoomError
                    if len(held.content) + len(part) > max_bytes:
                        raise TooLargeError
                    self._make_room(held, len(part))
                    held.content += part
                    self._sum += len(part)
                    seen(part)
        except TimeoutError:
            raise (NoRoomError if held.gave_way else TooSlowError) from None

    def _make_room(self, held: _Held, more: int) -> None:
        while self._sum + more > self._most:
            largest = max(self._arriving, key=lambda one: len(one.content))
            if len(largest.content) <= len(held.content) + more:
                raise NoRoomError
            largest.gave_way = True
            self._sum -= len(largest.content)
            largest.content.clear()
            largest.deadline.reschedule(asyncio.get_running_loop().time())
