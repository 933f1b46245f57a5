"""Erasure and export of the data of one user."""
