"""Views of a call for approvers."""
