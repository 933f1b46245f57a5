"""RiskGate: the deterministic gate for every tool call."""
