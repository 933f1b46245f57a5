"""Clock, identifiers, timestamps, files and concurrency helpers."""
