"""RiskGate's decision logic, independent of transport and storage."""
