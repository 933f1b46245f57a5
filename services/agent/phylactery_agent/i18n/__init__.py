"""What the agent says to people: one file of messages per language, and functions that read them."""
