"""Parser for what a person wrote. Pure functions over word lists, shared by agent, RiskGate and the CLI."""
