"""gRPC services of the agent: servicers, request checks and encoding."""
