"""Code shared by all Phylactery services: server, errors, identity, database, telemetry."""
