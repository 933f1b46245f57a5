"""Approvals: states, votes, answers and watches."""
