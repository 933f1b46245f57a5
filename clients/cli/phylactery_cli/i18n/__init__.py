"""Texts of the command, in Spanish and English."""
