"""Approvals a run waits for: watching and streaming."""
