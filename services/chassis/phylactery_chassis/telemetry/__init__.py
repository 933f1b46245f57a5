"""Traces, metrics and structured logs."""
