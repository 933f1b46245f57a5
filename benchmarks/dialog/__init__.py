"""Conversation: what is read of messages, measured on published sets beside what a simple rule or a library reads.

The project's own turns are in benchmarks/data. The other data lies outside the project, in a folder ``dialog`` below
PHYLACTERY_DATA_DIR, one JSON object a line. BENCH_PARTS names the parts that are run, all without it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from benchmarks.corpora import folder
from benchmarks.dialog import (
    answers,
    chat,
    figures,
    kinds,
    reminders,
    routing,
    scenarios,
    states,
    static_turns,
    talk,
    values,
)

OWN: Final[Mapping[str, Callable[[], None]]] = {
    "static": static_turns.run,
    "reminders": reminders.run,
    "chat": chat.run,
    "answers": answers.run,
    "kinds": kinds.run,
    "scenarios": scenarios.run,
}
"""The parts that play the project's own turns."""
PARTS: Final[Mapping[str, Callable[[Path], None]]] = {
    "values": values.run,
    "talk": talk.run,
    "states": states.run,
    "routing": routing.run,
}
"""The other parts by their names; each takes the folder of the data and prints its lines."""


async def run() -> None:
    """Print the lines of every part, or report on standard error that the data is missing."""
    wanted = os.environ.get("BENCH_PARTS", "").split() or [*OWN, *PARTS]
    for name, own in OWN.items():
        if name in wanted:
            own()
    home = folder("dialog")
    if home.is_dir():
        for name, part in PARTS.items():
            if name in wanted:
                part(home)
    else:
        sys.stderr.write(f"dialog: no data in {home}; name the folder above it in PHYLACTERY_DATA_DIR\n")
    figures.write_failures()
