"""What a shell command does: syntax, options, lists of programs, and the judge."""
