"""JSON-RPC messages as lines over a pipe, in both directions: bounded, and never logged.

The SDK's own transports read lines of any length and log lines that are not messages. Either side may be hostile or
broken, so these bound the length of a line, what is between two answers, and the pace of what nobody asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCResponse, jsonrpc_message_adapter

MAX_LINE_BYTES: Final = 8 * 1024 * 1024
MAX_NOISE_BYTES: Final = 64 * 1024 * 1024
"""How much that is no message may come between two answers, until the other side is given up."""
_CHUNK: Final = 64 * 1024
_MESSAGE: Final = b'"jsonrpc"'
"""What every message holds."""
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
    with sink, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
        async for size, lines in _arriving(reader):
            noise += size
            for line in lines:
                try:
                    message = SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
                except (ValueError, RecursionError):
                    continue
                if not pace.permits(message):
                    return
                noise -= len(line)
                await sink.send(message)
                if isinstance(message.message, JSONRPCResponse | JSONRPCError):
                    noise = 0
            if noise > MAX_NOISE_BYTES:
                return


async def _arriving(reader: asyncio.StreamReader) -> AsyncIterator[tuple[int, list[bytes]]]:
    """Yield what arrives: its size, and the lines in it that may be messages, the last one also without its end.

    Log lines are told from messages in bulk, before they are parsed. A line that is longer than a message ends the
    stream if it begins like one, because it may be the answer that is waited for; any other is passed over.
    """
    held, size, passing = list[bytes](), 0, False
    while chunk := await reader.read(_CHUNK):
        *ends, rest = chunk.split(b"\n")
        if ends:
            ends[0] = b"" if passing else b"".join((*held, ends[0]))
            held, size, passing = [], 0, False
        yield len(chunk), [line for line in ends if _MESSAGE in line]
        size += len(rest)
        held.append(rest)
        if size > MAX_LINE_BYTES:
            if not passing and held[0].lstrip().startswith(b"{"):
                return
            held, passing = [], True
        await asyncio.sleep(0)  # what is in the pipe already is read without waiting: others have their turn
    yield 0, [line for line in (b"".join(held),) if _MESSAGE in line and not passing]


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
