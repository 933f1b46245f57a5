"""RiskGate's store: all of its SQL. Every function takes the tenant, so that no query can omit it."""
