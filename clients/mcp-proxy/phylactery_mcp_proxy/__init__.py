"""RiskGate in front of any MCP server: every tool call is decided, bound, redeemed, reported and observed."""
