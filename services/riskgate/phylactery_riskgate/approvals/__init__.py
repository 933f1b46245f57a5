"""Approvals: states, votes, answers, watching."""
