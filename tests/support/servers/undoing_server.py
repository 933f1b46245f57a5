"""A real MCP server of notes whose undo may lie: python -m tests.support.servers.undoing_server FILE [FAULT ...].

Faults: "lies" (what takes back does nothing), "half" (it leaves a trace), "restless" (the list changes by itself),
"blind" (the list never changes), "fails" (adding is an error), "other" (another schema than before).
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def schema(name: str, fault: str = "") -> dict[str, Any]:
    """Return the input schema of a tool."""
    arguments = {"add": {"text": {"type": "string"}}, "remove": {"id": {"type": "integer"}}, "notes": {}}[name]
    if fault == "other":
        arguments = {**arguments, "all": {"type": "boolean"}}
    return {"type": "object", "properties": arguments, "additionalProperties": False}


def main() -> None:
    """Serve on standard input and output until the client is gone."""
    file, faults = Path(sys.argv[1]), set(sys.argv[2:])
    answers = itertools.count()

    def kept() -> dict[str, str]:
        found: dict[str, str] = json.loads(file.read_text()) if file.exists() else {}
        return found

    def keep(notes: dict[str, str]) -> None:
        file.write_text(json.dumps(notes))

    async def list_tools(_context: Any, _params: Any) -> types.ListToolsResult:
        names = ("add", "remove", "notes")
        return types.ListToolsResult(
            tools=[types.Tool(name=one, input_schema=schema(one, *(faults & {"other"}))) for one in names]
        )

    async def call_tool(_context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        notes, arguments, result = kept(), params.arguments or {}, {}
        if params.name == "add":
            number = len(notes) + 1
            notes[str(number)], result = arguments["text"], {"id": number}
        elif params.name == "remove" and "lies" not in faults:
            del notes[str(arguments["id"])]
            if "half" in faults:
                notes["trash"] = "1"
        elif params.name == "notes":
            result = {"notes": {} if "blind" in faults else notes}
            if "restless" in faults:
                result["answer"] = next(answers)
        keep(notes)
        failed = params.name == "add" and "fails" in faults
        return types.CallToolResult(
            content=[types.TextContent(text=json.dumps(result))], structured_content=result, is_error=failed
        )

    server = Server("notes", on_list_tools=list_tools, on_call_tool=call_tool)

    async def serve() -> None:
        async with stdio_server() as (incoming, outgoing):
            await server.run(incoming, outgoing, server.create_initialization_options())

    anyio.run(serve)


if __name__ == "__main__":
    main()
