"""A small MCP server for `riskgate doctor mcp`: python -m phylactery_mcp_proxy.canary FILE.

Every call that reaches it is a line in FILE, which shows what really ran.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any, Final

import mcp_types as types
from mcp.server.lowlevel import Server

from phylactery_mcp_proxy.frontend.stdio import serve_stdio

READS: Final = "list_songs"
WRITES: Final = "write_song"
UNKNOWN: Final = "fly_away"
"""A tool that is pinned, and that the doctor's catalog does not know."""


def build(effects: Path) -> Server[Any]:
    """Return the server."""
    nothing = {"type": "object", "properties": {}, "additionalProperties": False}
    song = {**nothing, "properties": {"text": {"type": "string"}}, "required": ["text"]}
    listed = [
        types.Tool(
            name=READS,
            description="Lists the songs.",
            input_schema=nothing,
            annotations=types.ToolAnnotations(read_only_hint=True),
        ),
        types.Tool(name=WRITES, description="Writes a song.", input_schema=song),
        types.Tool(name=UNKNOWN, description="Flies away.", input_schema=nothing),
    ]

    async def list_tools(_: Any, _params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        return types.ListToolsResult(tools=listed)

    async def call_tool(_: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        with effects.open("a", encoding="utf-8") as file:
            file.write(f"{params.name}\n")
        return types.CallToolResult(content=[types.TextContent(text=f"{params.name}: done")])

    return Server("canary", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


if __name__ == "__main__":
    asyncio.run(serve_stdio(build(Path(sys.argv[1]))))
