"""Context windows: what a turn is given of window, memories and profile."""
