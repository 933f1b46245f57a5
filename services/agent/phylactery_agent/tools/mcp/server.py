"""Lifecycle of one MCP server: start, comparison with its pins, calls, and restart.

Its pinned tools are registered whether or not the server is available. Its list is read at start, on each change
notification, and periodically. A tool that differs from its pin is switched off, and so are all tools while the server
is unavailable.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final

import mcp_types as types
from mcp import MCPError
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.tools.contract import (
    TOOL_ERROR,
    EffectUnknownError,
    Implementation,
    Invocation,
    ToolFailedError,
    ToolSpec,
)
from phylactery_agent.tools.mcp.config import McpConfig, McpConfigError, ServerConfig, ServerFaultError
from phylactery_agent.tools.mcp.pins import Pin, Pins, definition_hash
from phylactery_agent.tools.mcp.results import MAX_ERROR_CHARS, error_of, text_of
from phylactery_agent.tools.mcp.session import McpSession, RefusedCallError, SessionOverError, open_session, why_of
from phylactery_agent.tools.mcp.specs import McpArguments, spec_of, visible
from phylactery_agent.tools.registry import TOOL_DISABLED, DisabledReason, ToolRegistry

_BY: Final = "server"
_FIRST_PAUSE: Final = 0.5
_LONGEST_PAUSE: Final = 60.0
_HEALTHY_SECONDS: Final = 30.0
"""After this uptime, a server that ends is restarted at once."""
_READY_SECONDS: Final = 15.0
"""Maximum time a call waits for a starting server, and at most a quarter of the call's timeout."""
_NOTICED_SECONDS: Final = 0.02
_OURS: Final = (types.CONNECTION_CLOSED, types.REQUEST_TIMEOUT)
"""Errors raised by the SDK itself, without an answer from the server."""
_log = get_logger("mcp")


class McpServer:
    """A configured server and its pinned tools. Call begin() and end() once each."""

    def __init__(self, name: str, config: ServerConfig, pins: Mapping[str, Pin], tools: ToolRegistry) -> None:
        """Raise McpConfigError if a pinned tool does not fit its configuration."""
        self._name, self._config, self._tools = name, config, tools
        self._pins = {tool: pin for tool, pin in pins.items() if config.takes(tool)}
        self._specs = {tool: spec_of(name, config, pin) for tool, pin in self._pins.items()}
        self._unpinned: dict[str, ToolSpec] = {}
        self._session: McpSession | None = None
        self._ready, self._look = asyncio.Event(), asyncio.Event()
        self._slots = asyncio.Semaphore(config.max_concurrent)
        self._life: asyncio.Task[None] | None = None
        self._changed: set[str] = set()
        self._told = ""

    def register(self) -> Mapping[str, Implementation]:
        """Register the pinned tools, all switched off until the server is available, and return their implementations.

        Raises:
            ToolRegistrationError: A name is already in use.
        """
        for spec in self._specs.values():
            self._tools.register(spec, f"mcp:{self._name}")
            self._tools.object_to(spec.name, _BY, "SERVER_UNAVAILABLE")
        return {spec.name: self._implementation(tool) for tool, spec in self._specs.items()}

    def begin(self) -> asyncio.Event:
        """Start connecting in the background; return an event that is set once its tools can be called."""
        self._life = asyncio.create_task(self._live(), name=f"mcp:{self._name}")
        return self._ready

    async def end(self) -> None:
        """Close the session, stop the process with everything it started, and unregister the tools."""
        if self._life is not None:
            self._life.cancel()
            await asyncio.gather(self._life, return_exceptions=True)
        self._tools.unregister(spec.name for spec in (*self._specs.values(), *self._unpinned.values()))

    # ---- lifecycle --------------------------------------------------------------------------------------------------

    async def _live(self) -> None:
        pause = _FIRST_PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                async with open_session(self._config, self._look.set) as session:
                    await self._converse(session)
                why = "it ended"
            except Exception as error:  # noqa: BLE001 - whatever a server does, the agent goes on
                why = why_of(error)
            finally:
                self._suspend()
            if (task := asyncio.current_task()) is not None and task.cancelling():
                return  # the SDK takes a cancellation for its own while it closes a session, and goes on
            self._tell("an MCP server is away", why)
            if asyncio.get_running_loop().time() - began > _HEALTHY_SECONDS:
                pause = _FIRST_PAUSE
            await asyncio.sleep(pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads restarts, hides nothing
            pause = min(pause * 2, _LONGEST_PAUSE)

    async def _converse(self, session: McpSession) -> None:
        """Compare the server with its pins repeatedly, until it ends."""
        while not session.ended.is_set():
            self._look.clear()
            async with asyncio.timeout(self._config.start_seconds):
                listed = await session.tools()
            self._compare(listed)
            self._session = session
            self._ready.set()
            await self._next_look(session)

    async def _next_look(self, session: McpSession) -> None:
        """Wait for the next comparison; repeated change notifications are limited to one per second."""
        waits = [asyncio.create_task(event.wait()) for event in (session.ended, self._look)]
        try:
            await asyncio.wait(waits, timeout=self._config.refresh_seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()
        if self._look.is_set() and not session.ended.is_set():
            self._suspend()
            await asyncio.sleep(1.0)

    def _suspend(self) -> None:
        """Switch off all active tools, because their definitions are unknown; incoming calls wait briefly."""
        self._session = None
        self._ready.clear()
        for spec in self._specs.values():
            if spec.name not in self._changed:
                self._tools.object_to(spec.name, _BY, "SERVER_UNAVAILABLE")

    def _compare(self, listed: Mapping[str, Mapping[str, Any]]) -> None:
        """Switch on every pinned tool that matches its pin, and switch off the others."""
        for tool, spec in self._specs.items():
            now = listed.get(tool)
            if now is None:
                self._switch(spec, "SERVER_UNAVAILABLE")
            else:
                same = definition_hash(now) == self._pins[tool].hash
                self._switch(spec, None if same else "DESCRIPTION_CHANGED")
        self._show_unpinned({tool: now for tool, now in listed.items() if tool not in self._pins})
        on = sum(self._tools.disabled_reason(spec.name) is None for spec in self._specs.values())
        self._tell("an MCP server is there", f"{on} of {len(self._specs)} pinned tools are on", good=True)

    def _switch(self, spec: ToolSpec, why: DisabledReason | None) -> None:
        if why == "DESCRIPTION_CHANGED" and spec.name not in self._changed:
            _log.warning("a tool is switched off", tool=spec.name, reason=why)
        (self._changed.add if why == "DESCRIPTION_CHANGED" else self._changed.discard)(spec.name)
        if why is None:
            self._tools.withdraw(spec.name, _BY)
        else:
            self._tools.object_to(spec.name, _BY, why)

    def _show_unpinned(self, offered: Mapping[str, Mapping[str, Any]]) -> None:
        """Make ListTools show the tools that the server offers and that are not pinned."""
        wanted = {tool: now for tool, now in offered.items() if self._config.takes(tool)}
        self._tools.unregister(self._unpinned[tool].name for tool in self._unpinned.keys() - wanted.keys())
        known = {tool: spec for tool, spec in self._unpinned.items() if tool in wanted}
        for tool, now in wanted.items():
            if tool in known:
                continue
            try:
                spec = spec_of(self._name, self._config, Pin(now, now.get("inputSchema") or {}))
            except McpConfigError:
                continue  # its configuration is checked when it is pinned
            if spec.name in self._tools:
                continue
            self._tools.register(spec, f"mcp:{self._name}")
            self._tools.object_to(spec.name, _BY, "NOT_PINNED")
            known[tool] = spec
            _log.warning("a tool is switched off", tool=spec.name, reason="NOT_PINNED")
        self._unpinned = known

    def _tell(self, event: str, why: str, *, good: bool = False) -> None:
        """Log a change once; repeated failures of the same kind are not logged again."""
        if self._told != event + why:
            (_log.info if good else _log.warning)(event, server=self._name, why=why)
        self._told = event + why

    # ---- calls ------------------------------------------------------------------------------------------------------

    def _implementation(self, tool: str) -> Implementation:
        return Implementation(run=lambda invocation: self._run(tool, invocation))

    async def _run(self, tool: str, invocation: Invocation) -> str:
        """Call the tool once; tools.contract defines the meaning of its errors.

        A failure before the call was sent had no effect and is reported as such. Any later failure leaves the outcome
        open, which the executor judges by the tool's contract.
        """
        spec = self._specs[tool]
        assert isinstance(invocation.args, McpArguments)
        repeatable = spec.contract.idempotency != "unsafe"
        async with self._slot(spec):
            session = await self._standing(spec)
            reason = self._tools.disabled_reason(spec.name)
            if reason == "SERVER_UNAVAILABLE":  # as for an unavailable server: the tool may be offered again soon
                raise ToolFailedError(reason, f"the server of {spec.name} does not offer it at present")
            if reason is not None:
                raise ToolFailedError(TOOL_DISABLED, f"{spec.name} is switched off: {reason}")
            try:
                args, key = invocation.args.root, invocation.effect_key
                result = await session.call(tool, args, key, repeatable=repeatable)
            except RefusedCallError:
                self._look.set()  # its list may have changed
                refused = f"the server of {spec.name} took no such call"
                raise ToolFailedError("CALL_REFUSED", refused, not_done=not repeatable) from None
            except SessionOverError:
                self._suspend()  # a repeatable call waits for the next session
                self._look.set()
                raise
            except MCPError as error:
                if error.code == types.INVALID_PARAMS:
                    self._look.set()  # as above
                if error.code in _OURS:
                    raise ServerFaultError(f"its answer is error {error.code}") from None
                said = visible(error.error.message, MAX_ERROR_CHARS)
                raise EffectUnknownError(f"its answer is error {error.code}", code=TOOL_ERROR, said=said) from None
        if result.is_error and not repeatable:  # it does not say how far the tool got
            raise EffectUnknownError("its tool failed", code=TOOL_ERROR, said=error_of(result))
        return text_of(result, structured=spec.contract.answers == "json", limit=self._config.max_result_chars)

    @contextlib.asynccontextmanager
    async def _slot(self, spec: ToolSpec) -> AsyncIterator[None]:
        """Hold one of the server's concurrency slots for the block."""
        try:
            async with asyncio.timeout(spec.contract.timeout_seconds / 2):
                await self._slots.acquire()
        except TimeoutError:
            raise ToolFailedError("SERVER_BUSY", f"the server of {spec.name} has too much to do") from None
        try:
            yield
        finally:
            self._slots.release()

    async def _standing(self, spec: ToolSpec) -> McpSession:
        """Return the session, after a short wait if the server is about to become available."""
        try:
            async with asyncio.timeout(min(_READY_SECONDS, spec.contract.timeout_seconds / 4)):
                while True:
                    await self._ready.wait()
                    if self._session is not None and not self._session.ended.is_set():
                        return self._session
                    await asyncio.sleep(_NOTICED_SECONDS)  # it has ended, and its lifecycle task is about to notice
        except TimeoutError:
            raise ToolFailedError("SERVER_UNAVAILABLE", f"the server of {spec.name} is not there") from None


_SOON_SECONDS: Final = 5.0


class McpServers:
    """The servers by name; call end() once, after begin()."""

    def __init__(self, config: McpConfig, pins: Pins, tools: ToolRegistry) -> None:
        """Raise McpConfigError if a pinned tool does not fit the configuration."""
        self._servers = [McpServer(name, server, pins.of(name), tools) for name, server in config.servers.items()]

    def register(self) -> Mapping[str, Implementation]:
        """Register every pinned tool and return the implementations. Raise ToolRegistrationError."""
        found: dict[str, Implementation] = {}
        for server in self._servers:
            found.update(server.register())
        return found

    async def begin(self) -> None:
        """Start connecting to all servers in the background, and wait briefly for those that become available soon."""
        waits = [asyncio.create_task(server.begin().wait()) for server in self._servers]
        if waits:
            await asyncio.wait(waits, timeout=_SOON_SECONDS)
        for wait in waits:
            wait.cancel()

    async def end(self) -> None:
        """Stop all servers concurrently."""
        await asyncio.gather(*(server.end() for server in self._servers))
