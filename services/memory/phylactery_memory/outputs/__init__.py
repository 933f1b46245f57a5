"""Evicted tool outputs: storage, ranges and text search."""
