"""Intake of messages: inbox, redaction, classification, interpretation."""
