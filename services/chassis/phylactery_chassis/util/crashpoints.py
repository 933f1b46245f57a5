"""The numbered crash points of one effect's life.

Production code calls reach() right after a durable step and nothing happens. A test process installs a hook before it
starts the service, and the hook kills the process; no setting and no environment variable can.
"""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def install(hook: Callable[[str], None] | None) -> None:
    """Set what reach() calls; None for nothing."""
    global _hook  # noqa: PLW0603 - one process dies as a whole
    _hook = hook


def reach(name: str) -> None:
    """Mark a crash point, for example 'agent.7'."""
    if _hook is not None:
        _hook(name)
