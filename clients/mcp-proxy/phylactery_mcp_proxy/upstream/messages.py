"""JSON-RPC messages as lines over a pipe, in both directions: bounded, and never logged.

The SDK's own transports read lines of any length and log lines that are not messages. Either side may be hostile or
broken, so these bound the length of a line, the lines that are no messages, and the pace of what nobody asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
MAX_NOISE: Final = 1_000
"""Lines that are no messages, until the other side is given up."""
_BURST: Final = 10_000.0
_PER_SECOND: Final = 100.0

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]


class Pace:
    """A limit on messages nobody asked for: a burst, and then a rate."""

    def __init__(self) -> None:
        self._left, self._at = _BURST, asyncio.get_running_loop().time()

    def permits(self, item: Incoming) -> bool:
        """Return False once the other side floods; answers to requests do not count."""
        if isinstance(item, SessionMessage) and isinstance(item.message, JSONRPCResponse | JSONRPCError):
            return True
        now = asyncio.get_running_loop().time()
        self._left = min(_BURST, self._left + (now - self._at) * _PER_SECOND) - 1.0
        self._at = now
        return self._left >= 0.0


async def read_messages(reader: asyncio.StreamReader, sink: MemoryObjectSendStream[Incoming]) -> None:
    """Forward messages until the other side ends, or breaks a limit; close the stream then."""
    noise, pace = 0, Pace()
    with sink, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        while noise < MAX_NOISE:
            try:
                line = await reader.readuntil(b"\n")
            except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
                return
            try:
                message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
            except (ValueError, RecursionError):
                noise += 1
                continue
            if not pace.permits(message):
                return
            await sink.send(message)


async def write_messages(writer: asyncio.StreamWriter, source: MemoryObjectReceiveStream[SessionMessage]) -> None:
    """Write messages until the other side stops reading, or the stream is closed."""
    with contextlib.suppress(anyio.ClosedResourceError):
        async for message in source:
            text = message.message.model_dump_json(by_alias=True, exclude_unset=True)
            try:
                writer.write(text.encode() + b"\n")
                await writer.drain()
            except OSError:
                return
