"""Caller identity, bearer tokens, and signed permits and receipts."""
