"""Between the wire and what the domain speaks of, one module for each subject."""
