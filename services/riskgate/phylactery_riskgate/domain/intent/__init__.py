"""User intent and the origin of a call's values, from what RiskGate was shown of a task."""
