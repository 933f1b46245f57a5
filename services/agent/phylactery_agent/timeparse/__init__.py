"""Parsing of natural-language times and recurrences: pure functions of a zone and a moment."""
