"""The agent's edge: what comes in over gRPC, checked, recorded and answered."""
