"""The durable runtime: inbox, events, runs under leases, the ledger of effects, the outbox, and who drives them."""
