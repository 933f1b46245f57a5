"""The secured graph: state, nodes and the builder that joins them."""
