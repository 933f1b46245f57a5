"""The audit log: Merkle tree, signed heads, proofs, export and verification."""
