"""Numbered crash points in the life cycle of an effect.

Production code calls reach() right after a durable step, which does nothing. A test process installs a hook before it
starts the service, and the hook kills the process. No setting or environment variable can install one.
"""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None
"""Kept for the process: handed down to every durable step, it would be in the signature of half the code."""


def install(hook: Callable[[str], None] | None) -> None:
    """Set the function that reach() calls; None disables it."""
    global _hook  # noqa: PLW0603 - the hook kills the whole process
    _hook = hook


def reach(name: str) -> None:
    """Mark a crash point, for example 'agent.7'."""
    if _hook is not None:
        _hook(name)
