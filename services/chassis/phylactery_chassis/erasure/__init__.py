"""Erasure records, their encoding and the erasure log file."""
