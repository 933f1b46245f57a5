"""Messages that are none: marked instead of ending the call with a traceback, and refused where they are read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.protobuf.message import DecodeError

from phylactery_chassis.errors import InvalidArgument

_DRAIN_SECONDS, _DRAIN_IDLE_SECONDS, _DRAIN_MESSAGES = 2.0, 0.5, 10_000


class _Undecodable:
    """Stands for a message that is no protobuf of the expected type, invalid UTF-8 included."""


_UNDECODABLE = _Undecodable()


def tolerant(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    """Return a deserializer that marks a broken message instead of raising."""
    if deserialize is None:
        return None

    def decode(data: bytes) -> Any:
        try:
            return deserialize(data)
        except (DecodeError, UnicodeDecodeError, ValueError):
            return _UNDECODABLE

    return decode


def decoded(request: Any) -> Any:
    """Return the message. Raise InvalidArgument INVALID_REQUEST where it is marked as broken."""
    if request is _UNDECODABLE:
        raise InvalidArgument(
            "INVALID_REQUEST", "the message is not a valid request of this RPC; text fields must be valid UTF-8"
        )
    return request


async def decoded_stream(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the messages of a stream. Raise InvalidArgument INVALID_REQUEST at the first that is broken."""
    async for request in requests:
        yield decoded(request)


async def drain(requests: AsyncIterator[Any]) -> None:
    """Read and drop what a client still sends, within bounds, before its stream is refused.

    A client of grpc.aio that writes to a stream which has ended reports INTERNAL "Internal error from Core" instead of
    the status it was given.
    """
    with contextlib.suppress(TimeoutError, RuntimeError):  # the latter where somebody else reads the stream
        async with asyncio.timeout(_DRAIN_SECONDS):
            for _ in range(_DRAIN_MESSAGES):
                async with asyncio.timeout(_DRAIN_IDLE_SECONDS):
                    if await anext(requests, _END) is _END:
                        return


_END = object()
