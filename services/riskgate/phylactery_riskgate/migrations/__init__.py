"""Alembic revisions of RiskGate's schema."""
