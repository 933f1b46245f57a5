"""Policy bundles: files, cases, lint, diff and report."""
