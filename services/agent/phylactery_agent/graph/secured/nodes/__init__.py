"""Nodes of the secured graph, one module each, named after the nodes of the original specification."""
