"""Database access: writer, group commit, statements, migrations."""
