"""The gRPC face of RiskGate, one module for each service: decode, call, encode, and nothing else."""
