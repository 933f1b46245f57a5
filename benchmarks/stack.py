"""The three real services for the length of a measurement, on free ports and a data folder of their own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phylactery_cli.supervisor import Stack, running

FREE_PORTS = {"agent": 0, "riskgate": 0, "memory": 0}
QUIET = {name: {f"{name.upper()}_LOG_LEVEL": "WARNING"} for name in FREE_PORTS}


@contextmanager
def services() -> Iterator[Stack]:
    """Runs the stack for the block and removes its data folder."""
    with (
        tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder,
        running(Stack(Path(folder), FREE_PORTS, extra_env=QUIET)) as stack,
    ):
        yield stack
