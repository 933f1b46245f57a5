"""The MCP server that clients see, over standard streams and over streamable HTTP."""
