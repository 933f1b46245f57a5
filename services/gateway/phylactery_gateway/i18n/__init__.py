"""What the gateway itself says to people: one file of messages per language."""
