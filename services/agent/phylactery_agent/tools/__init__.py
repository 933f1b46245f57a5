"""Tools: their specifications, open to everybody, and their implementations, open to the executor alone."""
