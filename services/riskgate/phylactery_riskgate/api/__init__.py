"""gRPC services of RiskGate: servicers and message encoding."""
