"""An MCP server behind a URL: a single host, bounded answers, and secrets sent only to their configured target."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from phylactery_agent.tools.mcp.config import ServerConfig

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
MAX_STREAM_BYTES: Final = 64 * 1024 * 1024
"""Maximum size of one event stream; both a call's answer and unsolicited messages can be such a stream."""
MAX_STREAMS: Final = 30
"""Maximum burst of event streams opened by GET in one session; further ones are limited per second."""
STREAMS_PER_SECOND: Final = 1.0
_CONNECT_SECONDS: Final = 10.0
_STREAM: Final = "text/event-stream"


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that raises an error past its limit; in an event stream each event has its own limit, too."""

    def __init__(self, body: httpx2.AsyncByteStream, bound: int) -> None:
        self._body, self._bound = body, bound

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._bound
        async for chunk in self._body:
            left -= len(chunk)
            if left < 0:
                raise httpx2.ReadError("the answer is larger than an MCP server's may be")
            yield chunk

    async def aclose(self) -> None:
        """Close the body."""
        await self._body.aclose()


class _Pace:
    """A rate limiter for new streams: an initial burst, and then a rate per second."""

    def __init__(self) -> None:
        self._left, self._at = float(MAX_STREAMS), asyncio.get_running_loop().time()

    def take(self) -> bool:
        """Return True if one more may begin now."""
        now = asyncio.get_running_loop().time()
        self._left = min(MAX_STREAMS, self._left + (now - self._at) * STREAMS_PER_SECOND)
        self._at = now
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class _Bounded(httpx2.AsyncBaseTransport):
    """A transport that limits every answer and rejects compressed ones, whose decompressed size has no bound.

    A server may state how soon an ended stream is reopened, including at once, and the SDK obeys forever. Beyond the
    rate limit the request fails here, which makes the SDK abandon the stream.
    """

    def __init__(self) -> None:
        self._transport = httpx2.AsyncHTTPTransport(retries=0, trust_env=False)
        self._pace = _Pace()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request."""
        if request.method == "GET" and not self._pace.take():
            raise httpx2.ConnectError("the server ends its stream of events too often")
        response = await self._transport.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is compressed, which was not requested")
        streams = response.headers.get("content-type", "").lower().startswith(_STREAM)
        body = response.stream
        assert isinstance(body, httpx2.AsyncByteStream)
        response.stream = _BoundedBody(body, MAX_STREAM_BYTES if streams else MAX_ANSWER_BYTES)
        return response

    async def aclose(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


@asynccontextmanager
async def http_streams(config: ServerConfig) -> AsyncIterator[Any]:
    """Yield the streams of a server's messages.

    Raises:
        McpConfigError: A file of the configuration cannot be read.
    """
    bounds = httpx2.Timeout(_CONNECT_SECONDS, read=None)  # each call has its own timeout
    headers = {"accept-encoding": "identity", **config.headers()}
    client = httpx2.AsyncClient(transport=_Bounded(), headers=headers, timeout=bounds, trust_env=False)
    async with (
        client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams
