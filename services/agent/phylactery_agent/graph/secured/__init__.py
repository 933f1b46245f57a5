"""The `secured` graph."""
