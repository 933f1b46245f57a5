"""What RiskGate says to people: one file of messages per language."""
