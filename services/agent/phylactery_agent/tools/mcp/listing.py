"""Listing of a server's tools for pinning: nothing is called, and the server is stopped afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from phylactery_agent.tools.mcp.config import ServerConfig, ServerFaultError
from phylactery_agent.tools.mcp.session import open_session, why_of


async def list_tools(config: ServerConfig) -> Mapping[str, Mapping[str, Any]]:
    """Return the definitions of the offered and configured tools, by the server's own names.

    Raises:
        ServerFaultError: The server cannot be reached, or its list cannot be used; the message is built in.
    """
    try:
        async with open_session(config, lambda: None) as session, asyncio.timeout(config.start_seconds):
            listed = await session.tools()
    except Exception as error:  # noqa: BLE001 - any failure of a server is reported in one sentence
        raise ServerFaultError(why_of(error)) from None
    return {name: tool for name, tool in listed.items() if config.takes(name)}
