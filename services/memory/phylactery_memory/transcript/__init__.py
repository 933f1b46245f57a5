"""Conversation messages and their threads."""
