"""Conversation: what is read of messages, measured on published sets beside what a simple rule or a library reads.

The turns of static mode are in benchmarks/data. The other data lies outside the project, in a folder ``dialog`` below
PHYLACTERY_DATA_DIR, one JSON object a line.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.corpora import folder
from benchmarks.dialog import routing, static_turns, talk, values

PARTS: Final[Mapping[str, Callable[[Path], None]]] = {"values": values.run, "talk": talk.run, "routing": routing.run}
"""The parts of the suite by their names; each takes the folder of the data and prints its lines."""


async def run() -> None:
    """Print the lines of static mode and of every part, or report on standard error that the data is missing."""
    static_turns.run()
    home = folder("dialog")
    if not home.is_dir():
        sys.stderr.write(f"dialog: no data in {home}; name the folder above it in PHYLACTERY_DATA_DIR\n")
        return
    for part in PARTS.values():
        part(home)
