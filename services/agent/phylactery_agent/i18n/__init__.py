"""Texts for people, in Spanish and English."""
