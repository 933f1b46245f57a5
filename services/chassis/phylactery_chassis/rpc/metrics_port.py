"""The port that Prometheus reads metrics from: one page over HTTP, read-only.

Whoever reaches the port may connect and send nothing, or take nothing. So there are few connections, each has little
time, the one that waits longest gives its place to a new one, and the page is made at most once a second, whoever asks.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final

from phylactery_chassis.rpc.listeners import bound, saying_why
from phylactery_chassis.settings import is_loopback
from phylactery_chassis.telemetry.logs import Sampled, get_logger

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""Prometheus's text format; Prometheus 3 refuses a page without it."""
PATH: Final = "/metrics"
_CONNECTIONS = 32
_HEAD_BYTES = 8 * 1024
_HEAD_SECONDS, _PAGE_SECONDS, _WRITE_SECONDS = 5.0, 8.0, 10.0
"""Prometheus gives up after 10 seconds by default; a page that takes longer is answered with 503 before that."""
_FRESH_SECONDS = 1.0
_HOST = re.compile(r"(?:\[([0-9a-f:.]+)\]|([0-9a-z.-]+))(?::[0-9]+)?")

Page = Callable[[], bytes]


@dataclass(slots=True, eq=False)
class MetricsServer:
    """The metrics port of a running process; ``port`` is None if it has none."""

    port: int | None
    _server: asyncio.Server | None = None
    _endpoint: _Endpoint | None = None

    async def stop(self) -> None:
        """Stop at once: a scrape that is cut off is repeated by its client."""
        if self._server is not None and self._endpoint is not None:
            self._server.close()
            self._endpoint.end()
            await self._server.wait_closed()


async def start_metrics(page: Page | None, host: str, port: int | None, prefix: str) -> MetricsServer:
    """Serve the page on a port: none for None, a free one for 0.

    Raise StartError if it is taken: metrics that silently go missing are noticed when somebody needs them.
    """
    if port is None or page is None:
        return MetricsServer(None)
    with saying_why(host, port, f"{prefix}METRICS_PORT or {prefix}METRICS_HOST"):
        listening = bound(host, port, shared=False)
    endpoint = _Endpoint(page, local=is_loopback(host))
    server = await asyncio.start_server(endpoint.serve, sock=listening, limit=_HEAD_BYTES)
    return MetricsServer(listening.getsockname()[1], server, endpoint)


@dataclass(slots=True, eq=False)
class _Endpoint:
    """Answers requests, each on a connection of its own."""

    page: Page
    local: bool
    """True if only this machine reaches the port. A browser here does too: by a name of its own that leads to loopback
    (DNS rebinding) a page could read the answer, so none is given to such a name."""
    _open: dict[asyncio.StreamWriter, None] = field(default_factory=dict)
    """In the order they came."""
    _made: asyncio.Future[bytes] | None = None
    _made_at: float = 0.0
    _log: Sampled = field(default_factory=lambda: Sampled(get_logger("metrics")))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, then close the connection."""
        self._open[writer] = None
        if len(self._open) > _CONNECTIONS:
            next(iter(self._open)).transport.abort()
        try:
            # also aborted by end() and by a newer connection: then there is nobody to answer
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, TimeoutError):
                head = await asyncio.wait_for(_head_of(reader), _HEAD_SECONDS)
                response = await self._respond(head)
                writer.write(response)
                await asyncio.wait_for(writer.drain(), _WRITE_SECONDS)
                writer.close()
                await asyncio.wait_for(writer.wait_closed(), _WRITE_SECONDS)
        finally:
            del self._open[writer]
            writer.transport.abort()

    def end(self) -> None:
        """End all connections without waiting for their clients."""
        for writer in tuple(self._open):
            writer.transport.abort()

    async def _respond(self, head: bytes) -> bytes:
        """Return the response to the head of a request; a body is not read, because nothing is sent here."""
        match head.split(b"\r\n", 1)[0].split(b" "):
            case [b"GET" | b"HEAD" as method, target, version] if version.startswith(b"HTTP/1."):
                if self.local and not _asks_loopback(head):
                    return _response(HTTPStatus.FORBIDDEN, b"on loopback the metrics have no name but localhost\n")
                if target.split(b"?")[0] != PATH.encode():
                    return _response(HTTPStatus.NOT_FOUND, f"the metrics are at {PATH}\n".encode())
                return await self._read(with_body=method == b"GET")
            case [_, _, version] if version.startswith(b"HTTP/1."):
                return _response(HTTPStatus.METHOD_NOT_ALLOWED, b"the metrics can only be read\n", allow="GET, HEAD")
            case _:
                return _response(HTTPStatus.BAD_REQUEST, b"this is not a request of HTTP/1.1\n")

    async def _read(self, *, with_body: bool) -> bytes:
        try:
            page = await asyncio.wait_for(asyncio.shield(self._fresh()), _PAGE_SECONDS)
        except TimeoutError:
            self._log.warning("the metrics were not read in time", key="slow", seconds=_PAGE_SECONDS)
            return _response(HTTPStatus.SERVICE_UNAVAILABLE, b"the metrics take too long to read\n")
        except Exception as error:  # noqa: BLE001 - its text may hold a value, and the port stays open
            self._log.warning("the metrics cannot be read", key="error", error=type(error).__name__)
            return _response(HTTPStatus.INTERNAL_SERVER_ERROR, b"the metrics cannot be read; see the log\n")
        return _response(HTTPStatus.OK, page, CONTENT_TYPE, with_body=with_body)

    def _fresh(self) -> asyncio.Future[bytes]:
        """Return the page, made now unless it was made, or begun, a moment ago.

        One that takes long is waited for by everybody: a database that hangs holds one thread, not one a request.
        """
        loop = asyncio.get_running_loop()
        if self._made is None or (self._made.done() and loop.time() - self._made_at >= _FRESH_SECONDS):
            self._made, self._made_at = loop.run_in_executor(None, self.page), loop.time()
        return self._made


def _asks_loopback(head: bytes) -> bool:
    """Return True if a request names this machine as its host, or none."""
    hosts = [line.partition(b":")[2].strip() for line in head.split(b"\r\n")[1:] if line.lower().startswith(b"host:")]
    named = [_HOST.fullmatch(host.lower().decode("latin-1")) for host in hosts]
    return all(found is not None and is_loopback(found[1] or found[2]) for found in named)


async def _head_of(reader: asyncio.StreamReader) -> bytes:
    """Return the head of a request; one that is too long is cut off, and answered as what it is then."""
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        return b""


def _response(
    status: HTTPStatus,
    body: bytes,
    content_type: str = "text/plain; charset=utf-8",
    *,
    allow: str = "",
    with_body: bool = True,
) -> bytes:
    """Return a whole response. It names no server and no version."""
    lines = [
        f"HTTP/1.1 {status.value} {status.phrase}",
        f"Content-Type: {content_type}",
        f"Content-Length: {len(body)}",
        "Cache-Control: no-store",
        "X-Content-Type-Options: nosniff",
        "Connection: close",
        *([f"Allow: {allow}"] if allow else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + (body if with_body else b"")
