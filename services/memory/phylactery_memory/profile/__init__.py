"""Profile facts of a user."""
