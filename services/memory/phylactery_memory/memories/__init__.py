"""Semantic memories: write policy, storage, index and search."""
