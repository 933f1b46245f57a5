"""A process that outlives an interrupted run of the tests and ends what the run started.

A run that ends by itself stops its services and clusters. One that is killed cannot: a PostgreSQL cluster detaches from
the process that started it, and a forked service does not notice. The guardian waits for the end of a pipe, which comes
however the run ends, then kills every process with the run's id in its environment and removes the run's clusters.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Final

RUN: Final = "PHYLACTERY_TEST_RUN"
"""The variable that names the run to every process in it."""
_PROC: Final = Path("/proc")
_guardians: list[subprocess.Popen[bytes]] = []
"""The guardian of this process, whose pipe stays open as long as it is here."""


def guard_run() -> None:
    """Name this run and start its guardian; where there is no /proc, only name it."""
    os.environ[RUN] = uuid.uuid4().hex[:12]
    if _PROC.is_dir():
        # In a session of its own: the signal that ends the run must not reach it
        _guardians.append(subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, start_new_session=True))


def cluster_prefix() -> str:
    """Return how the folders of this run's clusters begin."""
    return f"phylactery-pg-{os.environ.get(RUN, 'alone')}-"


def _end_run() -> None:
    own = f"{RUN}={os.environ[RUN]}".encode()
    # A process that was starting another one while it was killed leaves that one to the next look
    while found := [pid for pid in _processes() if pid != os.getpid() and own in _environment(pid)]:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for place in {tempfile.gettempdir(), "/tmp"}:
        for folder in Path(place).glob(f"{cluster_prefix()}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _processes() -> list[int]:
    return [int(one.name) for one in _PROC.iterdir() if one.name.isdecimal()]


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to somebody else
        return []


if __name__ == "__main__":
    sys.stdin.read()
    _end_run()
