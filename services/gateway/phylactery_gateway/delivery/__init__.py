"""What goes on in the background: messages to the agent, its events to the outbox, the outbox to the channels."""
