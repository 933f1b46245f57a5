"""Stories: conversations about a form with what is expected of each reply."""
