"""The lines of the suite with the figure of their first run beside them, and the turns that failed.

``data/dialog/first.json`` holds the figures that were measured before any rule was changed for these turns.
BENCH_FAILURES names a file that gets every failed turn, one JSON object a line.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from benchmarks.measure import emit

OWN: Final = Path(__file__).parents[1] / "data" / "dialog"
_failed: Final[list[str]] = []


def percent(name: str, count: int, of: int, **beside: object) -> None:
    """Print a share of a number of cases in percent."""
    line(name, 100 * count / max(of, 1), "%", of=of, **beside)


def line(name: str, value: float, unit: str, **beside: object) -> None:
    """Print a figure, and its first one."""
    first = {"first": _first()[name]} if name in _first() else {}
    emit(f"dialog/{name}", value, unit, **first, **beside)


def failed(part: str, outcome: str, kind: str, **beside: object) -> None:
    """Keep a failed turn for the list."""
    _failed.append(json.dumps({"part": part, "outcome": outcome, "kind": kind, **beside}, ensure_ascii=False))


def write_failures() -> None:
    """Write the list, if a file is named for it."""
    if path := os.environ.get("BENCH_FAILURES", ""):
        Path(path).write_text("".join(f"{one}\n" for one in _failed), encoding="utf-8")
        sys.stderr.write(f"dialog: {len(_failed)} failed turns are in {path}\n")


def own_rows(name: str) -> list[Mapping[str, Any]]:
    """Return the rows of a file of the project's own data."""
    return [json.loads(one) for one in (OWN / f"{name}.jsonl").read_text(encoding="utf-8").splitlines() if one]


@cache
def _first() -> Mapping[str, float]:
    found: Mapping[str, float] = json.loads((OWN / "first.json").read_text(encoding="utf-8"))
    return found
