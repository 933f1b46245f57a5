"""Context of a turn: window, memories and profile."""
