"""Measurements: make bench SUITE=name prints one JSON object a line."""
