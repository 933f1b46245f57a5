"""Draft catalog entries from tools' own descriptions, for a person to review."""
