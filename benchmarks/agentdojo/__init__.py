"""AgentDojo's tasks and injections through RiskGate, played by a planner that obeys every injection on sight."""
