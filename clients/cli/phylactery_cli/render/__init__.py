"""Rendering of events, runs and traces."""
