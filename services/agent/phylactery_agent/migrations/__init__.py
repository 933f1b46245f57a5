"""The agent's schema migrations."""
