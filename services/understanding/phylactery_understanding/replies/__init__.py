"""Messages that refer to what was said before: answers, small talk, amendments and retractions."""
