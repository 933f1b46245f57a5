"""Strangers at a public HTTP port, with sockets of their own: they send what no client library would."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

UNSIGNED: Final = ""
MADE_UP: Final = f"X-Hub-Signature-256: sha256={64 * 'a'}\r\n"
"""A signature of the right form, which nobody made."""
_LIMIT_SECONDS: Final = 60.0


def head(path: str = "/webhooks/whatsapp", *, length: int | None = 0, more: str = "", method: str = "POST") -> bytes:
    """Return the head of a request; without a length its body comes in chunks."""
    sized = "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    return f"{method} {path} HTTP/1.1\r\nHost: gate\r\n{sized}\r\n{more}\r\n".encode("latin-1")


class Stranger:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes, *, pieces: int = 0, pause: float = 0.0) -> bool:
        """Send bytes, in pieces with pauses between; return False if the other side ended the connection."""
        size = pieces or max(1, len(data))
        with contextlib.suppress(OSError):
            for begin in range(0, len(data), size):
                self._writer.write(data[begin : begin + size])
                async with asyncio.timeout(_LIMIT_SECONDS):
                    await self._writer.drain()
                if pause:
                    await asyncio.sleep(pause)
            return not self._writer.is_closing()
        return False

    async def status(self) -> int:
        """Return the status of the next response, 0 if the connection ended without one."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            async with asyncio.timeout(_LIMIT_SECONDS):
                return int((await self._reader.readline()).split()[1])
        return 0

    async def ended(self) -> None:
        """Read until the other side has ended the connection."""
        with contextlib.suppress(OSError):
            async with asyncio.timeout(_LIMIT_SECONDS):
                while await self._reader.read(65_536):
                    pass

    def leave(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()


async def connect(port: int) -> Stranger:
    """Open a connection, of which little is read ahead."""
    return Stranger(*await asyncio.open_connection("127.0.0.1", port, limit=65_536))


@asynccontextmanager
async def connected(port: int, count: int) -> AsyncIterator[list[Stranger]]:
    """Open many connections for the block."""
    strangers: list[Stranger] = []
    try:
        while len(strangers) < count:
            strangers.append(await connect(port))
        yield strangers
    finally:
        leave(strangers)


def leave(strangers: Iterable[Stranger]) -> None:
    """End connections at once."""
    for one in strangers:
        one.leave()
