"""Tasks: words and results that decisions are judged by."""
