"""Static mode: versioned rules instead of a model. The same words give the same plan; nothing asks the network."""
