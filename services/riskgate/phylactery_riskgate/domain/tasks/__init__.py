"""What RiskGate was shown of one request of a user, and the facts it computes from it about a call."""
