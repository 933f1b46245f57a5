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
_BLOCK_BYTES: Final = 64 * 1024


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
    blocks: list[bytearray] = field(default_factory=list)
    """Many bodies that grow beside each other would each leave holes of all its former sizes; blocks leave none."""
    size: int = 0
    gave_way: bool = False

    def add(self, part: bytes) -> None:
        """Hold a part more. Parts of a byte each would take forty times their size as they are."""
        if not self.blocks or len(self.blocks[-1]) >= _BLOCK_BYTES:
            self.blocks.append(bytearray())
        self.blocks[-1] += part
        self.size += len(part)

    def take(self) -> bytes:
        """Return the whole, and hold nothing any more."""
        whole = b"".join(self.blocks)
        self.blocks.clear()
        return whole


class Bodies:
    """Reads the bodies of a port."""

    def __init__(self, most: int = HELD_BYTES, seconds: float = BODY_SECONDS) -> None:
        """Hold at most ``most`` bytes of all bodies together; each may take ``seconds``."""
        self._most, self.seconds = most, seconds
        self._sum = 0
        self._arriving: dict[_Held, None] = {}
        """Those that still arrive, first the one whose last part came longest ago."""

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._sum

    @asynccontextmanager
    async def read(
        self, request: Request, max_bytes: int, seen: Callable[[bytes], object] = len
    ) -> AsyncIterator[bytes]:
        """Hold a request's whole body for the block; ``seen`` gets each part of it as it arrives.

        Where the room is used up, the body that waits longest for its next part gives way, so that many that are never
        completed keep none out that is sent. Raise BodyError, or ClientDisconnect if the client hangs up.
        """
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > max_bytes:
            raise TooLargeError
        held = _Held(asyncio.timeout(self.seconds))
        try:
            await self._fill(held, request, max_bytes, seen)
            self._arriving.pop(held, None)
            yield held.take()
        finally:
            self._arriving.pop(held, None)
            self._sum -= held.size

    async def _fill(self, held: _Held, request: Request, max_bytes: int, seen: Callable[[bytes], object]) -> None:
        try:
            async with held.deadline:
                async for part in request.stream():
                    if held.gave_way:
                        raise NoRoomError
                    if held.size + len(part) > max_bytes:
                        raise TooLargeError
                    self._make_room(held, len(part))
                    held.add(part)
                    self._sum += len(part)
                    seen(part)
        except TimeoutError:
            raise (NoRoomError if held.gave_way else TooSlowError) from None

    def _make_room(self, held: _Held, more: int) -> None:
        self._arriving.pop(held, None)
        while self._sum + more > self._most:
            if not self._arriving:
                raise NoRoomError
            waits = next(iter(self._arriving))
            del self._arriving[waits]
            waits.gave_way = True
            self._sum -= waits.size
            waits.size = 0
            waits.blocks.clear()
            waits.deadline.reschedule(asyncio.get_running_loop().time())
        self._arriving[held] = None
