"""Starts programs that an interrupt reaches, wherever the tests themselves were started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """A program that is started in here is interrupted by SIGINT, as at a person's terminal.

    A background job of a script begins with ignored interrupts, and hands them down; a handler is not handed down.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
