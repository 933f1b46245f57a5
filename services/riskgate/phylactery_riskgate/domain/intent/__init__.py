"""What a user asked for and where a call's values come from, worked out from what RiskGate was shown of a task."""
