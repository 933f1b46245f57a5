"""Dispatch of turns to processes: claims, leases, replicas."""
