"""Client for language models behind OpenAI-compatible endpoints, with timeouts, retries and a circuit breaker."""
