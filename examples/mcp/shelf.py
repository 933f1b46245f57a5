"""A small MCP server over standard streams, to try docs/mcp.md with: it keeps lines in a file."""

from __future__ import annotations

from pathlib import Path

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

SHELF = Path("shelf.txt")
server = MCPServer("shelf")


@server.tool(annotations=ToolAnnotations(read_only_hint=True))
def list_books() -> str:
    """List the books on the shelf."""
    return SHELF.read_text(encoding="utf-8") if SHELF.exists() else "The shelf is empty."


@server.tool()
def add_book(title: str) -> str:
    """Put a book on the shelf."""
    with SHELF.open("a", encoding="utf-8") as file:
        file.write(f"{title}\n")
    return f"“{title}” stands on the shelf."


if __name__ == "__main__":
    server.run()
