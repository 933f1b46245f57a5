"""The gateway's rows: what came in, who wrote it, what the agent is to be asked, and what is to be sent."""
