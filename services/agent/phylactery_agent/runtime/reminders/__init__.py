"""Reminders: storage and scheduling."""
