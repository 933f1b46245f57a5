"""The agent's graphs: shared core, secured graph, react graph and LLM mode."""
