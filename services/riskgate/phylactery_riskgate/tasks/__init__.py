"""Tasks: the words and results that decisions depend on."""
