"""Where memory keeps things; SQL stays in here."""
