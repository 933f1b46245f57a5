"""Shared parts of graphs: specification, state, routing and events."""
