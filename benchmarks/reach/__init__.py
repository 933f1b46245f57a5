"""Reach: what a call through RiskGate costs from where other people's programs stand."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any, Final

from benchmarks.measure import emit
from benchmarks.reach import frameworks, guard, hooks, http, proxy

PARTS: Final[Mapping[str, Callable[[], AsyncIterator[Mapping[str, Any]]]]] = {
    "guard": guard.rows,
    "frameworks": frameworks.rows,
    "http": http.rows,
    "proxy": proxy.rows,
    "hooks": hooks.rows,
}
"""The parts of the suite by their names; each yields its measurements as emit takes them."""


async def run() -> None:
    """Print the measurements of every part."""
    for rows in PARTS.values():
        async for row in rows():
            emit(**row)
