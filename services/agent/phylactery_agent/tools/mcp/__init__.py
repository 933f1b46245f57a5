"""MCP servers as tools: configured, pinned, spoken to. The executor alone imports what can call one."""
