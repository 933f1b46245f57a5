"""gRPC services of memory: servicers and message encoding."""
