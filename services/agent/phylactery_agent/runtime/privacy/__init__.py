"""Erasure of users and threads, and retention."""
