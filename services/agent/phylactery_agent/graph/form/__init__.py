"""The form graph: a form filled in conversation, in the nodes of seed 004."""
