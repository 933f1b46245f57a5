"""Recognition by examples: what a message is like that no pattern reads (ADR 53)."""
