"""The form graph: a form filled in conversation, in the eight nodes of ADR 47."""
