"""Handing a conversation to a person: the queue, its claims, the silence of the agent meanwhile, and their expiry."""
