"""The three real services during a measurement, on free ports and with their own data folder."""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from phylactery_cli.supervisor import Stack, running

FREE_PORTS = {"agent": 0, "riskgate": 0, "memory": 0}
_TICKS = os.sysconf("SC_CLK_TCK")
_REST_SECONDS = 1.0
_NEXT_TO_NOTHING = 0.03
"""The share of that time the services may work and still count as idle: they poll each other occasionally."""
_PATIENCE_SECONDS = 120.0

QUIET = {name: {f"{name.upper()}_LOG_LEVEL": "WARNING"} for name in FREE_PORTS}


@contextmanager
def services() -> Iterator[Stack]:
    """Run the stack during the block and remove its data folder."""
    with (
        tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder,
        running(Stack(Path(folder), FREE_PORTS, extra_env=QUIET)) as stack,
    ):
        yield stack


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def at_rest(stack: Stack) -> None:
    """Wait until all services have used almost no processor time for a second, two minutes at most.

    Deliveries of a turn happen after its response and would otherwise be part of the next measurement.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    pids = [service.process.pid for service in stack.processes.values()]
    while time.monotonic() < deadline:
        before = sum(map(cpu_seconds, pids))
        await asyncio.sleep(_REST_SECONDS)
        if sum(map(cpu_seconds, pids)) - before <= _NEXT_TO_NOTHING * _REST_SECONDS:
            return
