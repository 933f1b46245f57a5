"""Proposes catalog entries from what tools say about themselves; whoever reads a draft decides."""
