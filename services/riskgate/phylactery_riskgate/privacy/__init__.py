"""Erasure of a user from the log, and retention of records."""
