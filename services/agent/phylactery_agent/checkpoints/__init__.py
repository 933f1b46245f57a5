"""Our checkpoint saver: LangGraph's position of a run, in the agent's own database."""
