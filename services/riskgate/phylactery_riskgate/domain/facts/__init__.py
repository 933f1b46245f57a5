"""Facts about a call, as inputs of policies."""
