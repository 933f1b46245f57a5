"""Randomness, and opaque ids: a prefix that says what it is, and 130 random bits."""

from __future__ import annotations

import os
import threading

_ID_CHARACTERS = 26
_STOCK_BYTES = 4_096
_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""A letter for every byte there is: each stands for eight of them, so one is as likely as another."""


class _Stock(threading.local):
    """Random bytes of one thread, fetched many at a time: each call to the system lets another thread go first."""

    def __init__(self) -> None:
        self._bytes, self._at = b"", 0

    def take(self, size: int) -> bytes:
        if self._at + size > len(self._bytes):
            self._bytes, self._at = os.urandom(max(_STOCK_BYTES, size)), 0
        taken = self._bytes[self._at : self._at + size]
        self._at += size
        return taken


_stock = _Stock()


def _forget() -> None:
    """Let a forked process, which is the thread that forked, begin with bytes of its own."""
    global _stock  # noqa: PLW0603 - what the other threads had is gone with them
    _stock = _Stock()


os.register_at_fork(after_in_child=_forget)


def random_bytes(size: int) -> bytes:
    """Return bytes nobody can guess and nobody else gets: good for keys, salts and nonces."""
    return _stock.take(size)


def new_id(prefix: str) -> str:
    """Return for example 'ap_' and 26 characters of [a-z2-7]; prefix without the underscore."""
    return f"{prefix}_{random_bytes(_ID_CHARACTERS).translate(_LETTERS).decode()}"
