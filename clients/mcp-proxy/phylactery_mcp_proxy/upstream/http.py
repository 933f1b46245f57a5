"""The guarded server behind a URL: one host, bounded answers, no redirects, and secrets sent only there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import httpx2
from mcp.client.streamable_http import streamable_http_client

from phylactery_mcp_proxy.settings import ServerTarget
from phylactery_mcp_proxy.upstream.messages import MAX_LINE_BYTES, Incoming, Pace, Streams

MAX_STREAM_BYTES: Final = 64 * 1024 * 1024
"""The most of one event stream, whose events each have the limit of a line."""
_CONNECT_SECONDS: Final = 10.0
_STREAM: Final = "text/event-stream"


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error past its limit."""

    def __init__(self, body: httpx2.AsyncByteStream, limit: int) -> None:
        self._body, self._limit = body, limit

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._limit
        async for chunk in self._body:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError("the answer is larger than an MCP server's may be")
            yield chunk

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


class _Bounded(httpx2.AsyncBaseTransport):
    """A transport that bounds every answer, and refuses compressed ones, whose real size has no bound.

    A server may end its event stream at once and say that it is to be reopened at once, which the SDK obeys for ever:
    past the pace the request fails here, and the SDK gives the stream up.
    """

    def __init__(self) -> None:
        self._transport = httpx2.AsyncHTTPTransport(retries=0, trust_env=False)
        self._left, self._at = 30.0, asyncio.get_running_loop().time()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if request.method == "GET" and not self._may_open():
            raise httpx2.ConnectError("the server ends its stream of events too often")
        response = await self._transport.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not requested")
        body = response.stream
        assert isinstance(body, httpx2.AsyncByteStream)
        streams = response.headers.get("content-type", "").lower().startswith(_STREAM)
        response.stream = _BoundedBody(body, MAX_STREAM_BYTES if streams else MAX_LINE_BYTES)
        return response

    def _may_open(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._left, self._at = min(30.0, self._left + (now - self._at)) - 1.0, now
        return self._left >= 0.0

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


@asynccontextmanager
async def http_streams(target: ServerTarget) -> AsyncIterator[Streams]:
    """Yield the streams of the server's messages; the incoming one ends if the server floods it.

    Raises:
        ConfigError: A file with a header cannot be read.
    """
    limits = httpx2.Timeout(_CONNECT_SECONDS, read=None)  # each call has its own timeout
    headers = {"accept-encoding": "identity", **target.headers()}
    client = httpx2.AsyncClient(transport=_Bounded(), headers=headers, timeout=limits, trust_env=False)
    async with (
        client,
        streamable_http_client(target.url, http_client=client, max_sse_event_size=MAX_LINE_BYTES) as (
            received,
            outgoing,
        ),
    ):
        sink, incoming = anyio.create_memory_object_stream[Incoming](0)
        forwarding = asyncio.create_task(_forward(received, sink))
        try:
            yield incoming, outgoing  # type: ignore[misc]  # the SDK's stream, which takes the same messages
        finally:
            forwarding.cancel()
            await asyncio.gather(forwarding, return_exceptions=True)
            incoming.close()


async def _forward(received: Any, sink: Any) -> None:
    pace = Pace()
    with sink, contextlib.suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async for item in received:
            if not pace.permits(item):
                return
            await sink.send(item)
