"""The agent service: plans, proposes, suspends and resumes; executes nothing without a receipt."""
