"""The demo: a scripted conversation against the three real services."""
