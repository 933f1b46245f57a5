"""Runs: storage, cancellation, queries, retry, unknown outcomes."""
