"""Language models behind OpenAI-compatible endpoints: asked with time-outs, retried, guarded, and never trusted."""
