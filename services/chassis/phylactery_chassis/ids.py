"""Randomness, and opaque ids: a prefix that says what it is, and 128 random bits."""

from __future__ import annotations

import os
import threading

_BITS_128 = 16
_STOCK_BYTES = 4_096
_LETTERS = "abcdefghijklmnopqrstuvwxyz234567"
_PAIRS = tuple(first + second for first in _LETTERS for second in _LETTERS)
_PLACES = range(120, -1, -10)


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
    """Lets a forked process, which is the thread that forked, begin with bytes of its own."""
    global _stock  # noqa: PLW0603 - what the other threads had is gone with them
    _stock = _Stock()


os.register_at_fork(after_in_child=_forget)


def random_bytes(size: int) -> bytes:
    """Answers bytes nobody can guess and nobody else gets: good for keys, salts and nonces."""
    return _stock.take(size)


def new_id(prefix: str) -> str:
    """Answers for example 'ap_' and 26 characters of [a-z2-7]; prefix without the underscore."""
    # RFC 4648's base32 without its padding; the standard library's own takes five times as long
    bits = int.from_bytes(random_bytes(_BITS_128), "big") << 2
    return f"{prefix}_{''.join([_PAIRS[bits >> place & 1023] for place in _PLACES])}"
