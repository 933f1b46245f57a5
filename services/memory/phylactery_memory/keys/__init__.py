"""Data keys under master keys, and their rotation."""
