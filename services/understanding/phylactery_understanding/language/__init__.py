"""Words as such: their folding, the lexicon of each language, numbers and times."""
