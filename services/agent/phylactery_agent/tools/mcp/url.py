"""An MCP server behind a URL: one host, bounded answers, and no secret further than it was given for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import httpx2
from mcp.client.streamable_http import streamable_http_client

from phylactery_agent.tools.mcp.config import ServerConfig

MAX_ANSWER_BYTES: Final = 8 * 1024 * 1024
_CONNECT_SECONDS: Final = 10.0
_STREAM: Final = "text/event-stream"


class _BoundedBody(httpx2.AsyncByteStream):
    """A body that ends with an error past its bound; a stream of events has a bound of its own for each event."""

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
        """Closes the body."""
        await self._body.aclose()


class _Bounded(httpx2.AsyncBaseTransport):
    """Bounds every answer, and takes none that is packed: what a small one unpacks to has no bound."""

    def __init__(self) -> None:
        self._transport = httpx2.AsyncHTTPTransport(retries=0, trust_env=False)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request."""
        response = await self._transport.handle_async_request(request)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            await response.aclose()
            raise httpx2.ReadError("the answer is packed though nobody asked for that")
        if not response.headers.get("content-type", "").lower().startswith(_STREAM):
            body = response.stream
            assert isinstance(body, httpx2.AsyncByteStream)
            response.stream = _BoundedBody(body, MAX_ANSWER_BYTES)
        return response

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._transport.aclose()


@asynccontextmanager
async def http_streams(config: ServerConfig) -> AsyncIterator[Any]:
    """Answers the streams of a server's messages.

    Raises:
        McpConfigError: a file of the configuration cannot be read.
    """
    bounds = httpx2.Timeout(_CONNECT_SECONDS, read=None)  # each call has a bound of its own
    headers = {"accept-encoding": "identity", **config.headers()}
    client = httpx2.AsyncClient(transport=_Bounded(), headers=headers, timeout=bounds, trust_env=False)
    async with (
        client,
        streamable_http_client(config.url, http_client=client, max_sse_event_size=MAX_ANSWER_BYTES) as streams,
    ):
        yield streams
