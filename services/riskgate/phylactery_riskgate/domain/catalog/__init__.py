"""The tool catalog: entries, checks and outlook."""
