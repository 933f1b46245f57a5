"""Revisions of RiskGate's schema."""
