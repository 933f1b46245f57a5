"""Caller identity, tokens and Ed25519 signature checks."""
