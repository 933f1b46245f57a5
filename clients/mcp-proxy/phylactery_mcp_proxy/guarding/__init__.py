"""One call under RiskGate: decision, question, execution, and what its result shows."""
