"""The secured graph: builder and nodes."""
