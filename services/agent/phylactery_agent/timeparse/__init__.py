"""Times as people say them, and times that come again: pure functions over a zone and a moment."""
