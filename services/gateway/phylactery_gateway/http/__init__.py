"""The only public port: webhooks in, and whether the process is healthy."""
