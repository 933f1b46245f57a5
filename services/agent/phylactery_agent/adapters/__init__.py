"""The other services behind the agent's ports."""
