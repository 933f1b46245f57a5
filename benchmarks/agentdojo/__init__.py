"""AgentDojo's tasks and injections through RiskGate, with a planner that obeys every injection it sees."""
