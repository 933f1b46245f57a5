"""RiskGate processes on one core, and the measuring process on another."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_START_SECONDS = 60
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Server:
    """A running RiskGate."""

    target: str
    pid: int

    def cpu_seconds(self) -> float:
        """Return the processor time used by its processes so far."""
        return sum(_cpu_ticks(pid) for pid in (self.pid, *_children(self.pid))) / _TICKS


@contextlib.contextmanager
def riskgate(
    *, cores: set[int] | None = None, workers: int = 1, bundle: Path | None = None, notices: Path | None = None
) -> Iterator[Server]:
    """Run RiskGate with its own data folder, optionally on given cores, with another bundle, and with sinks."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        ready = Path(folder) / "ready.json"
        environment = os.environ | {
            "RISKGATE_DATA_DIR": folder,
            "RISKGATE_PORT": "0",
            "RISKGATE_READY_FILE": str(ready),
            "RISKGATE_LOG_LEVEL": "WARNING",
            **({} if bundle is None else {"RISKGATE_BUNDLE": str(bundle)}),
            **({} if notices is None else {"RISKGATE_NOTICES": str(notices)}),
        }
        start = f"import os; os.sched_setaffinity(0, {sorted(cores or os.sched_getaffinity(0))}); "
        start += f"from phylactery_riskgate.__main__ import serve; serve(workers={workers})"
        process = subprocess.Popen([sys.executable, "-c", start], env=environment)
        try:
            deadline = time.monotonic() + _START_SECONDS
            while not ready.exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("RiskGate did not start; what it said stands above")
                time.sleep(0.02)
            yield Server(f"127.0.0.1:{json.loads(ready.read_text())['port']}", process.pid)
        finally:
            process.terminate()
            process.wait(_START_SECONDS)


@contextlib.contextmanager
def apart() -> Iterator[set[int] | None]:
    """Restrict this process to one core during the block and yield the others, None if there is only one."""
    cores = os.sched_getaffinity(0)
    own = max(cores)
    if len(cores) == 1:
        yield None
        return
    os.sched_setaffinity(0, {own})
    try:
        yield {min(cores)}
    finally:
        os.sched_setaffinity(0, cores)


def _children(pid: int) -> list[int]:
    try:
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    except OSError:
        return []
    return [int(one) for one in listed.split()]


def _cpu_ticks(pid: int) -> int:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0
    return int(fields[11]) + int(fields[12])
