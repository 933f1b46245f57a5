"""The rules of memory, without storage and without a wire."""
