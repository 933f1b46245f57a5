"""A proposed call, and its comparison with what was asked for."""
