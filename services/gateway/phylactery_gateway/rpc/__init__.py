"""The services' RPCs over HTTP: JSON in and out, server streams as events, AuthZEN, and their description."""
