"""The gRPC face of memory, one module for each service or part of one: decode, call, encode, and nothing else."""
