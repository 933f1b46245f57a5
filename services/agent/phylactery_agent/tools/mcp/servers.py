"""All MCP servers of an agent. The executor alone imports this module; an import contract checks it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Final

from phylactery_agent.tools.contract import Implementation
from phylactery_agent.tools.mcp.config import McpConfig
from phylactery_agent.tools.mcp.pins import Pins
from phylactery_agent.tools.mcp.server import McpServer

_SOON_SECONDS: Final = 5.0


class McpServers:
    """The servers by name; end() comes after begin(), once."""

    def __init__(self, config: McpConfig, pins: Pins) -> None:
        """Raises McpConfigError where a pinned tool does not fit the configuration."""
        self._servers = [McpServer(name, server, pins.of(name)) for name, server in config.servers.items()]

    def register(self) -> Mapping[str, Implementation]:
        """Registers every pinned tool and answers what runs it. Raises ToolRegistrationError."""
        found: dict[str, Implementation] = {}
        for server in self._servers:
            found.update(server.register())
        return found

    async def begin(self) -> None:
        """Begins to speak to all of them, in the background; whoever is there soon is waited for."""
        waits = [asyncio.create_task(server.begin().wait()) for server in self._servers]
        if waits:
            await asyncio.wait(waits, timeout=_SOON_SECONDS)
        for wait in waits:
            wait.cancel()

    async def end(self) -> None:
        """Ends all of them at once."""
        await asyncio.gather(*(server.end() for server in self._servers))
