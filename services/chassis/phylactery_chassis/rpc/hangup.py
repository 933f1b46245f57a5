"""SIGHUP subscriptions: owners of reloadable files are called back when the signal arrives."""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import Callable
from weakref import WeakKeyDictionary

Callback = Callable[[], None]

_callbacks: WeakKeyDictionary[asyncio.AbstractEventLoop, list[Callback]] = WeakKeyDictionary()
"""Kept for the process, as the signal is its own: an event loop has one handler for it, which every owner shares."""


def subscribe(callback: Callback) -> None:
    """Call ``callback`` in the running loop at every SIGHUP, until it is unsubscribed.

    Do nothing where signals cannot be handled: outside the main thread, or on a system without them.
    """
    loop = asyncio.get_running_loop()
    callbacks = _callbacks.setdefault(loop, [])
    if not callbacks:
        with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(signal.SIGHUP, lambda: [each() for each in list(callbacks)])
    callbacks.append(callback)


def unsubscribe(callback: Callback) -> None:
    """Remove a subscription; removing the last one restores the default signal handling."""
    loop = asyncio.get_running_loop()
    callbacks = _callbacks.get(loop, [])
    if callback in callbacks:
        callbacks.remove(callback)
        if not callbacks:
            with contextlib.suppress(NotImplementedError, RuntimeError, ValueError):
                loop.remove_signal_handler(signal.SIGHUP)
