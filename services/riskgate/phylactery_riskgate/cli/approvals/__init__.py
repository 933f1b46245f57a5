"""`riskgate approvals`: list, show and answer approvals."""
