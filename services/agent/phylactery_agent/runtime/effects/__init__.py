"""Effects: ledger, outbox and delivery."""
