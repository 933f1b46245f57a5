"""Full-text retrieval without a model: terms, index, vectors and ranking of one user's memories."""
