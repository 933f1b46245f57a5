"""Starting programs so that SIGINT reaches them, wherever the tests themselves were started."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def interruptible() -> Iterator[None]:
    """Ensure that programs started in the block are interrupted by SIGINT, as at a terminal.

    A background job of a script starts with SIGINT ignored and passes that on; a signal handler is not inherited.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
