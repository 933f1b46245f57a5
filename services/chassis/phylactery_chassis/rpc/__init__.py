"""gRPC server, interceptors, channels, workers and request validation."""
