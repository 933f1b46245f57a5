"""The Python client of Phylactery."""
