"""The content of a call, compared with the content that was asked for."""
