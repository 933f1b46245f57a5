"""What memory says to people: one file of messages per language."""
