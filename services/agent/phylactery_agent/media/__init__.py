"""Attachments: what a message may carry, how it is kept, and how its content becomes text."""
