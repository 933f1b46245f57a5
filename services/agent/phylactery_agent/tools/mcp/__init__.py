"""MCP servers as tools: configuration, pins and sessions.

Only the executor imports the modules that can call a server.
"""
