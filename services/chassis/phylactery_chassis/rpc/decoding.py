"""Tolerant decoding: an undecodable message is marked, and refused where it is read, without a traceback."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Any

from google.protobuf.message import DecodeError

from phylactery_chassis.errors import InvalidArgument

_DRAIN_SECONDS, _DRAIN_IDLE_SECONDS, _DRAIN_MESSAGES = 2.0, 0.5, 10_000


class _Undecodable:
    """Placeholder for a message that is not a protobuf of the expected type, invalid UTF-8 included."""


_UNDECODABLE = _Undecodable()


def tolerant(
    deserialize: Callable[[bytes], Any] | None, *, max_bytes: int | None = None
) -> Callable[[bytes], Any] | None:
    """Return a deserializer that marks an undecodable or too large message instead of raising."""
    if deserialize is None:
        return None

    def decode(data: bytes) -> Any:
        if max_bytes is not None and len(data) > max_bytes:
            return _UNDECODABLE
        try:
            return deserialize(data)
        except (DecodeError, UnicodeDecodeError, ValueError):
            return _UNDECODABLE

    return decode


def decoded(request: Any) -> Any:
    """Return the message. Raise InvalidArgument INVALID_REQUEST if it is marked as undecodable."""
    if request is _UNDECODABLE:
        raise InvalidArgument(
            "INVALID_REQUEST", "the message is not a valid request of this RPC; text fields must be valid UTF-8"
        )
    return request


async def decoded_stream(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
    """Yield the messages of a stream. Raise InvalidArgument INVALID_REQUEST at the first undecodable one."""
    async for request in requests:
        yield decoded(request)


async def drain(requests: AsyncIterator[Any]) -> None:
    """Read and discard what a client still sends, within bounds, before its stream is refused.

    A grpc.aio client that writes to an ended stream reports INTERNAL "Internal error from Core" instead of the status
    it was sent.
    """
    with contextlib.suppress(TimeoutError, RuntimeError):  # RuntimeError if the stream is already being read
        async with asyncio.timeout(_DRAIN_SECONDS):
            for _ in range(_DRAIN_MESSAGES):
                async with asyncio.timeout(_DRAIN_IDLE_SECONDS):
                    if await anext(requests, _END) is _END:
                        return


_END = object()
