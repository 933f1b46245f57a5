"""Erasure of values from the log, and retention of records."""
