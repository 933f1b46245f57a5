"""Tables, records, events, sealing and metrics of the database."""
