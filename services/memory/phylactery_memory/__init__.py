"""Memory: evicted outputs and the conversation window."""
