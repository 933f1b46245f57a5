"""Finding text by words, with no model: how text becomes terms, and how terms rank what one user has."""
