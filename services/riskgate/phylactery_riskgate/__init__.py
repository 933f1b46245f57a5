"""RiskGate: the deterministic gate every tool call passes."""
