"""The parser of a message: its asks, with a label for each word."""
