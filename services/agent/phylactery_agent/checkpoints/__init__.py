"""LangGraph checkpoint saver over the agent's own database."""
