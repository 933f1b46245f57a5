"""The tool catalog: entries, checks and decision previews."""
