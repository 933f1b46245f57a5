"""Memory service: evicted outputs, transcripts, memories and profiles of users."""
