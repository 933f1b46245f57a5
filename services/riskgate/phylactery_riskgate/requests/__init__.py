"""Requests as the edge accepts them. A fault here is the envelope's: INVALID_ARGUMENT, and nothing is recorded."""
