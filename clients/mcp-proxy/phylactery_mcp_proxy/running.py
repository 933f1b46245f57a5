"""One proxy process: the guarded server, RiskGate, and the clients, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.metadata
import logging
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from mcp.server.lowlevel import Server
from phylactery_client import PhylacteryError

from phylactery_mcp_proxy.frontend.http import Address, Clients, current_subject, serve_http
from phylactery_mcp_proxy.frontend.server import Behind, build
from phylactery_mcp_proxy.frontend.stdio import serve_stdio
from phylactery_mcp_proxy.guarding.calls import Caller
from phylactery_mcp_proxy.guarding.tools import PinnedTools
from phylactery_mcp_proxy.settings import GateTarget, ServerTarget
from phylactery_mcp_proxy.state.catalog import draft, next_steps, write_offered
from phylactery_mcp_proxy.state.folder import StateFolder
from phylactery_mcp_proxy.state.journal import Journal, ReportingClient, report_left_behind
from phylactery_mcp_proxy.state.pins import Definitions, load_pins
from phylactery_mcp_proxy.upstream.session import Upstream

_REPORT_PAUSE: Final = 5.0
_LONGEST_REPORT_PAUSE: Final = 300.0
_STATE_KEY: Final = "request-state.key"
_CALL_KEY: Final = "calls.key"

log = logging.getLogger("phylactery_mcp_proxy")


@dataclass(frozen=True, slots=True)
class Options:
    """How a proxy is run."""

    target: ServerTarget
    gate: GateTarget
    folder: StateFolder
    forms: bool = False
    http: Address | None = None
    clients: Clients | None = None


async def run(options: Options) -> None:
    """Serve until the client leaves, or a signal comes. The guarded server ends with it.

    Raises:
        ConfigError, StateError: The options or the folder cannot be used.
    """
    async with assembled(options) as server:
        serving = asyncio.ensure_future(_serve(server, options))
        loop = asyncio.get_running_loop()
        for one in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(one, serving.cancel)
        with contextlib.suppress(asyncio.CancelledError):
            await serving


async def _serve(server: Server[Any], options: Options) -> None:
    if options.http is None:
        await serve_stdio(server)
    else:
        await serve_http(
            server, options.http, options.clients, lambda url: log.warning("%s at %s", options.target.name, url)
        )


@dataclass(slots=True)
class _Callers:
    """The callers by subject: one of the proxy's own, or one for each client with a token."""

    options: Options
    gate: ReportingClient
    tools: PinnedTools
    upstream: Upstream
    key: bytes
    known: dict[str, Caller] = field(default_factory=dict)

    def current(self, _: Any = None) -> Caller:
        """Return the caller of the request that is served."""
        subject = current_subject() or self.options.gate.subject
        if subject not in self.known:
            self.known[subject] = Caller(
                self.gate.acting_for(subject) if subject else self.gate,
                subject=subject,
                thread_id=self.options.gate.thread_id or f"mcp-{self.options.target.name}",
                key=self.key,
                tools=self.tools,
                upstream=self.upstream,
                limit=self.options.target.max_result_chars,
            )
        return self.known[subject]


@asynccontextmanager
async def assembled(options: Options) -> AsyncIterator[Server[Any]]:
    """Yield the server for clients, with everything behind it. Raise StateError."""
    target, folder = options.target, options.folder
    tools = PinnedTools(target, load_pins(folder))
    watcher = _Watcher(options, tools)
    upstream = Upstream(target, watcher.listed)
    works: set[asyncio.Task[Any]] = set()
    journal = Journal(folder)
    try:
        async with ReportingClient(options.gate.target, token=options.gate.token) as gate:
            gate.journal = journal
            callers = _Callers(options, gate, tools, upstream, folder.secret(_CALL_KEY))
            behind = Behind(target.name, tools, upstream, callers.current, target.start_seconds, options.forms)
            server = build(
                behind,
                works,
                version=importlib.metadata.version("phylactery-client"),
                state_key=folder.secret(_STATE_KEY),
            )
            jobs = [asyncio.create_task(one) for one in (upstream.run(), _report(journal, gate), watcher.draft())]
            try:
                yield server
            finally:
                await _stopped([*works])
                await _stopped(jobs)
    finally:
        journal.close()


async def _stopped(tasks: list[asyncio.Task[Any]]) -> None:
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def _report(journal: Journal, gate: ReportingClient) -> None:
    """Report what a dead process left open, as soon as RiskGate takes it."""
    pause = _REPORT_PAUSE
    while True:
        try:
            if reported := await report_left_behind(journal, gate):
                log.warning("%d executions that a dead proxy left open are recorded as in doubt", reported)
            pause = _REPORT_PAUSE
        except PhylacteryError as error:
            log.warning("executions left open are not reported yet (%s)", error.code.name)
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_REPORT_PAUSE)


class _Watcher:
    """Compares each list of the server with the pins, and tells the operator what is blocked."""

    def __init__(self, options: Options, tools: PinnedTools) -> None:
        self._options, self._tools = options, tools
        self._told: dict[str, str] = {}
        self._undrafted: asyncio.Queue[Definitions] = asyncio.Queue()

    def listed(self, listed: Definitions) -> None:
        """Take over a list."""
        self._tools.compare(listed)
        blocked = self._tools.blocked()
        for name, why in blocked.items():
            if self._told.get(name) != why:
                log.warning("%s", why)
        if blocked != self._told and blocked and not self._tools.usable():
            if not self._undrafted.empty():
                self._undrafted.get_nowait()
            self._undrafted.put_nowait(listed)
        self._told = blocked

    async def draft(self) -> None:
        """Draft the catalog's entries of the newest list that needs them, one after another, until cancelled."""
        while True:
            await self._draft(await self._undrafted.get())

    async def _draft(self, listed: Definitions) -> None:
        folder, name = self._options.folder, self._options.target.name
        try:
            write_offered(folder, name, listed)
            drafted = await draft(folder)
        except Exception as error:  # noqa: BLE001 - a help for the operator, without which the proxy goes on
            log.warning("no catalog was drafted: %s", error)
            return
        log.warning("%s", next_steps(name, folder, drafted))
