"""RiskGate before coding agents: hooks of Claude Code, Codex and Gemini CLI."""
