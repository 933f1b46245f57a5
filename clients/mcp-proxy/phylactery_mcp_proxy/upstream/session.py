"""Sessions with the guarded server, one after another: its list of tools, and its calls.

A server may ask its client for model output, a person's input, or folders. Nothing of that is offered: it would be a
way around RiskGate. Its instructions, logs and the texts of its errors are not passed on.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final, Self

import mcp_types as types
from mcp import Client, ClientSession, MCPError
from mcp.shared.dispatcher import ProgressFnT
from pydantic import TypeAdapter, ValidationError

from phylactery_mcp_proxy.settings import ConfigError, ServerTarget
from phylactery_mcp_proxy.state.pins import DefinitionError, Definitions, known_by
from phylactery_mcp_proxy.upstream.http import http_streams
from phylactery_mcp_proxy.upstream.messages import Streams
from phylactery_mcp_proxy.upstream.process import ServerFaultError, process_streams

MAX_TOOLS: Final = 200
MAX_PAGES: Final = 50
EFFECT_KEY: Final = "phylactery/effect-key"
"""The field of a call's _meta with the execution's id, by which a server can tell a repetition."""
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 30.0
_HEALTHY_SECONDS: Final = 30.0
_BETWEEN_LISTS: Final = 1.0
"""Seconds between two looks at the tools, however often a server announces that they change."""
_US: Final = types.Implementation(name="phylactery-mcp-proxy", version="1")
_ANSWER: Final[TypeAdapter[types.CallToolResult | types.InputRequiredResult]] = TypeAdapter(
    types.CallToolResult | types.InputRequiredResult
)


class NotRunError(Exception):
    """Error for a call that never began; the message is built in."""


class OutcomeUnknownError(Exception):
    """Error for a call that was sent and has no usable answer: nobody knows how far it got."""


class Upstream:
    """The guarded server, started again when it ends. run() is its life; call() waits until it is ready."""

    def __init__(self, target: ServerTarget, on_listed: Callable[[Definitions], None]) -> None:
        """on_listed gets the definitions of the tools by their own names, at each connection and each change."""
        self._target, self._on_listed = target, on_listed
        self._session: ClientSession | None = None
        self._ready, self._look, self._listed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._ended = asyncio.Event()
        self._announced, self._looked = 0, 0
        self.fault = ""
        """Why the server is away, in built-in words; empty while it is there."""

    async def run(self) -> None:
        """Keep a session until this is cancelled."""
        pause = _FIRST_PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with connected(self._target, self._changed) as (session, ended):
                    await self._converse(session, ended)
                self.fault = "it ended"
            except Exception as error:  # noqa: BLE001 - whatever a server does, the proxy goes on
                self.fault = why_of(error)
            finally:
                self._session = None
                self._ready.clear()
                self._listed.set()  # who waits for a look waits in vain
            if (task := asyncio.current_task()) is not None and task.cancelling():
                return  # the SDK takes a cancellation for its own while it closes a session, and goes on
            if asyncio.get_running_loop().time() - began > _HEALTHY_SECONDS:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads restarts, hides nothing
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def ready(self, seconds: float) -> bool:
        """Wait until the tools are listed; return False if they are not in time."""
        if self._ended.is_set():  # and run() has not noticed yet
            self._ready.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._ready.wait()
        return self._ready.is_set()

    async def call(
        self, tool: str, arguments: Mapping[str, Any], key: str, progress: ProgressFnT
    ) -> types.CallToolResult:
        """Call a tool once and return its result, which is unchecked.

        Raises:
            NotRunError: The call never began.
            OutcomeUnknownError: It was sent, and has no usable answer.
        """
        session = self._session
        if session is None:
            raise NotRunError("the MCP server is not running")
        meta: types.RequestParamsMeta = {EFFECT_KEY: key}  # type: ignore[typeddict-unknown-key]  # the protocol allows any
        params = types.CallToolRequestParams(name=tool, arguments=dict(arguments), _meta=meta)
        try:
            answer = await session.send_request(
                types.CallToolRequest(params=params),
                _ANSWER,
                request_read_timeout_seconds=self._target.call_seconds,
                progress_callback=progress,
            )
        except MCPError as error:
            if error.code == types.METHOD_NOT_FOUND:
                raise NotRunError("the MCP server says that it knows no such call") from None
            if error.code == types.REQUEST_TIMEOUT:
                raise OutcomeUnknownError(f"no answer within {self._target.call_seconds:g} seconds") from None
            raise OutcomeUnknownError("the MCP server answered with an error of the protocol") from None
        except (ValidationError, RuntimeError, ValueError, RecursionError):
            raise OutcomeUnknownError("the MCP server's answer is not the result of a tool") from None
        if isinstance(answer, types.InputRequiredResult):
            raise OutcomeUnknownError("the MCP server asked for input, which it does not get here")
        return answer

    async def settled(self) -> bool:
        """Wait until the changes announced so far have been looked at; return False if that does not come about."""
        announced = self._announced
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._target.start_seconds):
                while self._looked < announced and self._session is not None:
                    self._listed.clear()
                    await self._listed.wait()
        return self._looked >= announced

    def _changed(self) -> None:
        self._announced += 1
        self._look.set()

    async def _converse(self, session: ClientSession, ended: asyncio.Event) -> None:
        while not ended.is_set():
            self._look.clear()  # what is announced from here on may be missing in this list
            announced = self._announced
            async with asyncio.timeout(self._target.start_seconds):
                listed = await list_tools(session)
            self._on_listed(listed)
            self._looked = announced
            self.fault, self._session, self._ended = "", session, ended
            self._ready.set()
            self._listed.set()
            await self._next_look(ended)

    async def _next_look(self, ended: asyncio.Event) -> None:
        """Wait for the server's end, an announced change, or the time to look again."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_BETWEEN_LISTS):
                await ended.wait()
        waits = [asyncio.create_task(one.wait()) for one in (ended, self._look)]
        try:
            await asyncio.wait(waits, timeout=self._target.refresh_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waits:
                one.cancel()


@asynccontextmanager
async def connected(
    target: ServerTarget, on_changed: Callable[[], None]
) -> AsyncIterator[tuple[ClientSession, asyncio.Event]]:
    """Yield a session in the newest version both sides speak, and an event that is set once the server is gone.

    Raises:
        ServerFaultError: The server cannot be started, or does not answer in time.
        ConfigError, MCPError, OSError, ExceptionGroup: The server cannot be reached.
    """
    ended = asyncio.Event()

    async def heard(message: Any) -> None:
        if isinstance(message, types.ToolListChangedNotification):
            on_changed()

    transport = process_streams(target) if target.command else http_streams(target)
    client = Client(_watched(transport, ended), cache=None, message_handler=heard, client_info=_US)
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(target.start_seconds):
                await stack.enter_async_context(client)
        except TimeoutError:
            raise ServerFaultError(f"it did not answer within {target.start_seconds:g} seconds") from None
        except (RuntimeError, ValidationError):
            raise ServerFaultError("it speaks no version of the protocol that is known here") from None
        yield client.session, ended


async def list_tools(session: ClientSession) -> Definitions:
    """Return every tool's identifying definition by its own name.

    Raises:
        ServerFaultError: The list is too long, circular, or names a tool twice.
        MCPError, OSError: The server does not answer.
    """
    found: dict[str, dict[str, Any]] = {}
    cursor, seen = None, set[str]()
    for _ in range(MAX_PAGES):
        page = await session.list_tools(
            params=types.PaginatedRequestParams(cursor=cursor) if cursor is not None else None
        )
        for tool in page.tools:
            _keep(found, tool)
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            raise ServerFaultError("its list of tools goes in a circle")
        seen.add(cursor)
    raise ServerFaultError(f"its list of tools has more than {MAX_PAGES} pages")


def why_of(error: BaseException) -> str:
    """Return why a session failed, in built-in words without any of the server's text."""
    for one in _leaves(error):
        if isinstance(one, ServerFaultError | ConfigError):
            return str(one)
    return "; ".join(dict.fromkeys(type(one).__name__ for one in _leaves(error)))


def _keep(found: dict[str, dict[str, Any]], tool: types.Tool) -> None:
    if tool.name in found:
        raise ServerFaultError("its list names a tool twice")
    if len(found) >= MAX_TOOLS:
        raise ServerFaultError(f"its list has more than {MAX_TOOLS} tools")
    try:
        found[tool.name] = known_by(tool.model_dump(by_alias=True, mode="json", exclude_none=True))
    except DefinitionError as error:
        raise ServerFaultError(f"its tool number {len(found) + 1} cannot be kept: {error}") from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


@asynccontextmanager
async def _watched(
    transport: contextlib.AbstractAsyncContextManager[Streams], ended: asyncio.Event
) -> AsyncIterator[Streams]:
    """Yield a transport's streams; set ``ended`` when the incoming one does."""
    async with transport as (incoming, outgoing):
        yield _Watched(incoming, ended), outgoing  # type: ignore[misc]  # it reads as the stream does


class _Watched:
    """A stream that tells when it ends."""

    def __init__(self, stream: Any, ended: asyncio.Event) -> None:
        self._stream, self._ended = stream, ended

    def __aiter__(self) -> _Watched:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._ended.set()
            raise

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> Any:
        return await self._stream.__aexit__(*error)
