"""A policy bundle: files, cases, lint, diff and report."""
