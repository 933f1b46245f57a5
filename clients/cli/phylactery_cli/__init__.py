"""The phylactery command."""
