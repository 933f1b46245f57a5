"""Random bytes, and opaque ids made of a type prefix and 130 random bits."""

from __future__ import annotations

import os
import threading

_ID_CHARACTERS = 26
_STOCK_BYTES = 4_096
_LETTERS = b"abcdefghijklmnopqrstuvwxyz234567" * 8
"""A letter for each byte value. Each of the 32 letters maps from eight values, so all are equally likely."""


class _Stock(threading.local):
    """A per-thread buffer of random bytes, fetched in bulk because each system call releases the GIL."""

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
    """Reset the buffer in a forked process, so that it does not share bytes with its parent."""
    global _stock  # noqa: PLW0603 - the buffers of other threads do not exist in the child
    _stock = _Stock()


os.register_at_fork(after_in_child=_forget)


def random_bytes(size: int) -> bytes:
    """Return cryptographically secure random bytes, suitable for keys, salts and nonces."""
    return _stock.take(size)


def new_id(prefix: str) -> str:
    """Return, for example, 'ap_' followed by 26 characters of [a-z2-7]; ``prefix`` is given without the underscore."""
    return f"{prefix}_{random_bytes(_ID_CHARACTERS).translate(_LETTERS).decode()}"
