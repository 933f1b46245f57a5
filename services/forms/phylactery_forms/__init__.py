"""Forms filled in conversation: definitions as data, values read from messages, and the rules of the dialogue."""
