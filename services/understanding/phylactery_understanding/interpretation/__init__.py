"""A model's interpretation of a message: validated against the words, and compared with a call."""
