"""The guarded MCP server: its process or URL, and a bounded session with it."""
