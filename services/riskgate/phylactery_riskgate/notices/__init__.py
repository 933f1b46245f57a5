"""Notices: people are told that something waits or went wrong, by webhook, chat or mail, from a durable outbox."""
