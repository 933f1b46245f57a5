"""The agent: plans, proposes, suspends, resumes; runs nothing without a receipt."""
