"""Static mode: versioned rules instead of a model. The same words always give the same plan, without network access."""
