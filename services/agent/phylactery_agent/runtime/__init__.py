"""The durable runtime: inbox, events, runs under leases, the effect ledger, the outbox, and their dispatch."""
