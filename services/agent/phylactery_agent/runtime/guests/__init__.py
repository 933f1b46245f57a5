"""Guests: people of channels, who of them an operator lifted, and their share of a day."""
