"""What a proxy keeps on disk: pins, the catalog's draft, and executions that have not ended."""
