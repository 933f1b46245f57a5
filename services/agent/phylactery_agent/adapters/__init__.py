"""Adapters that implement the agent's ports over the other services."""
