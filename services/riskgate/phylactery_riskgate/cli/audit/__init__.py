"""`riskgate audit`: read, export, stream, verify and witness the log."""
