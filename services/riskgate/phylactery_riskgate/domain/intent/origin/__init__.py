"""The origin of a call's values: the user's words, tool results, or computation."""
