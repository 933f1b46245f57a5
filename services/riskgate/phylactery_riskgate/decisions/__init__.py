"""Decisions: evaluate, redeem, explain, replay and stop calls."""
