"""How events, runs and traces are printed."""
