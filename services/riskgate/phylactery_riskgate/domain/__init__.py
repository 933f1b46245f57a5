"""What RiskGate decides and why, with neither a wire nor a database."""
