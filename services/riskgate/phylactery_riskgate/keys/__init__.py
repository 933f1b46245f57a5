"""Signing keys: ring, rotation, journal and permits."""
