"""Bodies of requests, of which no more is ever held than is allowed."""

from __future__ import annotations

from starlette.requests import Request


class TooLargeError(Exception):
    """A body is larger than allowed."""


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the raw body. Raise TooLargeError, or ClientDisconnect if the client hangs up."""
    length = request.headers.get("content-length", "")
    if length.isdigit() and int(length) > max_bytes:
        raise TooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > max_bytes:
            raise TooLargeError
    return bytes(body)
