"""User-facing texts in Spanish and English."""
