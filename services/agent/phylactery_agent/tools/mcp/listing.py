"""Asks a server once what tools it has, for whoever pins them: nothing is called, and the server is ended again."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from phylactery_agent.tools.mcp.config import ServerConfig, ServerFaultError
from phylactery_agent.tools.mcp.session import open_session, why_of


async def list_tools(config: ServerConfig) -> Mapping[str, Mapping[str, Any]]:
    """Return the tools a server offers and the configuration takes, by its own names, as what they are known by.

    Raises:
        ServerFaultError: it cannot be spoken to, or its list cannot be used; the message is ours.
    """
    try:
        async with open_session(config, lambda: None) as session, asyncio.timeout(config.start_seconds):
            listed = await session.tools()
    except Exception as error:  # noqa: BLE001 - whatever a server does, whoever pins is told in one sentence
        raise ServerFaultError(why_of(error)) from None
    return {name: tool for name, tool in listed.items() if config.takes(name)}
