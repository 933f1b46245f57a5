"""Forms in conversation: definitions, sessions and their end in a turn."""
