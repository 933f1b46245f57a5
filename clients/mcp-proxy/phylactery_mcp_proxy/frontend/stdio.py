"""Serving one client over the standard streams, with bounded lines; whatever else prints goes to standard error."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Final

import anyio
from mcp.server.lowlevel import Server
from mcp.shared.message import SessionMessage

from phylactery_mcp_proxy.settings import ConfigError
from phylactery_mcp_proxy.upstream.messages import MAX_LINE_BYTES, Incoming, read_messages, write_messages

_STDIN: Final = 0
_STDOUT: Final = 1
_STDERR: Final = 2


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the client closes our standard input. Raise ConfigError if the streams are no pipes."""
    reader, writer, taken = await _pipes()
    incoming_sent, incoming = anyio.create_memory_object_stream[Incoming](0)
    outgoing, outgoing_read = anyio.create_memory_object_stream[SessionMessage](0)
    reading = asyncio.create_task(read_messages(reader, incoming_sent))
    writing = asyncio.create_task(write_messages(writer, outgoing_read))
    # a client that no longer reads is gone
    writing.add_done_callback(lambda _: incoming_sent.close())
    try:
        await server.run(incoming, outgoing, server.create_initialization_options())
    except* anyio.BrokenResourceError:
        pass  # ended by a signal while the SDK passed a message on to its own loop
    finally:
        for job in (reading, writing):
            job.cancel()
        await asyncio.gather(reading, writing, return_exceptions=True)
        for stream in (incoming_sent, incoming, outgoing, outgoing_read):
            stream.close()
        taken.close()
        writer.transport.abort()


async def _pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter, asyncio.BaseTransport]:
    """Return the client's messages, where to write ours, and the transport of what is read."""
    loop = asyncio.get_running_loop()
    taken, given = os.dup(_STDIN), os.dup(_STDOUT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    os.dup2(_STDERR, _STDOUT)
    reader = asyncio.StreamReader(limit=MAX_LINE_BYTES)
    try:
        reading, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(taken, "rb", 0)
        )
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(given, "wb", 0)
        )
    except ValueError:
        raise ConfigError("standard input and output are the client's: pipes or sockets, and no files") from None
    return reader, asyncio.StreamWriter(transport, protocol, None, loop), reading
