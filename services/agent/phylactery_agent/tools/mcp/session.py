"""A session with an MCP server through the official SDK, limited to listing tools and calling one.

A server may ask its client for model output, for a person's input, or for folders. None of that is offered here, and
such requests are refused: they would be a second path to the model. The SDK's own logs and spans repeat what servers
send, so both are dropped.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import mcp_types as types
from mcp import ClientSession, MCPError
from mcp.client._transport import ReadStream
from mcp.shared.message import SessionMessage
from opentelemetry import context as otel_context
from opentelemetry import trace
from pydantic import TypeAdapter, ValidationError

from phylactery_agent.tools.mcp.command import is_log, process_streams
from phylactery_agent.tools.mcp.config import McpConfigError, ServerConfig, ServerFaultError
from phylactery_agent.tools.mcp.pins import DefinitionError, known_by
from phylactery_agent.tools.mcp.specs import visible
from phylactery_agent.tools.mcp.url import http_streams

MAX_TOOLS: Final = 200
MAX_PAGES: Final = 50
MAX_UNASKED: Final = 10_000
"""Maximum number of unsolicited messages between two answers before a server is given up; log messages do not count."""
EFFECT_KEY: Final = "phylactery/effect-key"
"""The field of a call's _meta with the idempotency key, which makes a retry of the same effect one effect."""
_OVER: Final = "Session terminated"
"""The SDK's text for the answer that no such session exists; a server may also send it itself."""
_CALLED: Final[TypeAdapter[types.CallToolResult]] = TypeAdapter(types.CallToolResult)
_US: Final = types.Implementation(name="phylactery", version="1")

for _name in ("mcp", "client"):
    logging.getLogger(_name).addHandler(logging.NullHandler())
    logging.getLogger(_name).propagate = False


class RefusedCallError(Exception):
    """Error for a call that the server reports as not accepted, so nothing happened."""


class SessionOverError(ServerFaultError):
    """Error for a session the server no longer knows; a call sent in it may have begun."""


class _Unasked:
    """A message stream that ends if the server floods it with unsolicited messages; ``ended`` is set then.

    Log messages are dropped: nothing here reads them, and the transports limit what a server may send.
    """

    def __init__(self, stream: ReadStream[SessionMessage | Exception], ended: asyncio.Event) -> None:
        self._stream, self._ended = stream, ended
        self._left = MAX_UNASKED

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message."""
        return await self.__anext__()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._stream.aclose()

    def __aiter__(self) -> _Unasked:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            while True:
                item = await self._stream.__anext__()
                if not isinstance(item, SessionMessage) or not is_log(item.message):
                    break
            self._count(item)
        except BaseException:
            self._ended.set()
            raise
        return item

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(kind, error, trace)

    def _count(self, item: SessionMessage | Exception) -> None:
        if isinstance(item, SessionMessage) and isinstance(item.message, types.JSONRPCResponse | types.JSONRPCError):
            self._left = MAX_UNASKED
            return
        self._left -= 1
        if self._left <= 0:
            raise StopAsyncIteration

    @property
    def last_context(self) -> Any:
        """Return the sender's context, if the transport carries one."""
        return getattr(self._stream, "last_context", None)


class McpSession:
    """An established session: initialised, and able to list and call."""

    def __init__(self, session: ClientSession, ended: asyncio.Event) -> None:
        self._session = session
        self.ended = ended
        """Set once the server says no more."""

    async def tools(self) -> dict[str, dict[str, Any]]:
        """Return every tool's identifying definition by its own name.

        Raises:
            ServerFaultError: The list is too long, circular, or names one tool twice.
            MCPError, OSError: The server does not answer the request.
        """
        found: dict[str, dict[str, Any]] = {}
        cursor, seen = None, set[str]()
        for _ in range(MAX_PAGES):
            params = types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
            with _unseen():
                page = await self._session.list_tools(params=params)
            for tool in page.tools:
                _keep(found, tool)
            cursor = page.next_cursor
            if cursor is None:
                return found
            if cursor in seen:
                raise ServerFaultError("its list of tools goes in a circle")
            seen.add(cursor)
        raise ServerFaultError(f"its list of tools has more than {MAX_PAGES} pages")

    async def call(
        self, tool: str, arguments: Mapping[str, Any], effect_key: str, *, repeatable: bool = False
    ) -> types.CallToolResult:
        """Call a tool once and return its result, which is the server's unchecked content.

        repeatable means that the tool may run twice. Only then does an error about arguments count as a call that was
        not run: a tool can have done half of its work before another service refuses its arguments.

        Raises:
            RefusedCallError: The server did not accept the call.
            MCPError, ServerFaultError, OSError: The outcome is unknown; SessionOverError is one of these.
        """
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments), _meta={EFFECT_KEY: effect_key})
        request = types.CallToolRequest(params=params)
        try:
            with _unseen():
                return await self._session.send_request(request, _CALLED)
        except ValidationError:
            raise ServerFaultError("its answer is not the result of a tool") from None
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND or (repeatable and error.code == types.INVALID_PARAMS):
                raise RefusedCallError from None
            if error.code == types.INVALID_REQUEST and error.error.message == _OVER:
                raise SessionOverError("it knows the conversation no more") from None
            raise


def _keep(found: dict[str, dict[str, Any]], tool: types.Tool) -> None:
    if tool.name in found:
        raise ServerFaultError("its list names a tool twice")
    if len(found) >= MAX_TOOLS:
        raise ServerFaultError(f"its list has more than {MAX_TOOLS} tools")
    try:
        found[tool.name] = known_by(tool.model_dump(by_alias=True, mode="json", exclude_none=True))
    except DefinitionError as error:
        raise ServerFaultError(f"its tool number {len(found) + 1} cannot be kept: {error}") from None


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Suppress the SDK's spans, which contain what servers answer."""
    above = trace.get_current_span().get_span_context()
    # Without a parent, a span would begin a new sampled trace; an unsampled parent makes it unsampled.
    unsampled = trace.SpanContext(above.trace_id or 1, above.span_id or 1, is_remote=False)
    token = otel_context.attach(trace.set_span_in_context(trace.NonRecordingSpan(unsampled)))
    try:
        yield
    finally:
        otel_context.detach(token)


@asynccontextmanager
async def open_session(config: ServerConfig, on_list_changed: Callable[[], None]) -> AsyncIterator[McpSession]:
    """Open a session with a server; on_list_changed is called when the server reports changed tools.

    Raises:
        ServerFaultError: The server cannot be started, or does not answer in time.
        McpConfigError, MCPError, OSError, ExceptionGroup: The server cannot be reached.
    """

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_list_changed()

    ended = asyncio.Event()
    streams = process_streams(config) if config.command else http_streams(config)
    async with (
        streams as (incoming, outgoing),
        ClientSession(_Unasked(incoming, ended), outgoing, message_handler=heard, client_info=_US) as session,
    ):
        try:
            with _unseen():
                async with asyncio.timeout(config.start_seconds):
                    await session.initialize()
        except TimeoutError:
            raise ServerFaultError(f"it did not answer within {config.start_seconds:g} seconds") from None
        except (RuntimeError, ValidationError):
            raise ServerFaultError("it speaks no version of the protocol that is known here") from None
        yield McpSession(session, ended)


def why_of(error: BaseException) -> str:
    """Return why a session failed, in built-in words without any of the server's text."""
    for one in _leaves(error):
        if isinstance(one, ServerFaultError | McpConfigError):
            return visible(str(one))
    return "; ".join(dict.fromkeys(type(one).__name__ for one in _leaves(error)))


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
