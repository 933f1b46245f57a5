"""A process that outlives an interrupted run of the tests and ends what the run started.

A run that ends by itself stops its services and clusters. One that is killed cannot: a PostgreSQL cluster detaches from
the process that started it, and a forked service runs on. The guardian waits for the end of a pipe, which comes however
the run ends, then kills every process with the run's id in its environment, with its descendants, and removes the run's
clusters. It finds processes in /proc: on Linux.
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
_LIMIT_SECONDS: Final = 60.0
_guardians: list[subprocess.Popen[bytes]] = []
"""The guardian of this process, whose pipe stays open as long as it is here."""


def guard_run() -> None:
    """Name this run and start its guardian; where there is no /proc, only name it."""
    os.environ[RUN] = uuid.uuid4().hex[:12]
    if _PROC.is_dir():
        # In a session of its own, since the signal that ends the run must not reach it; without the run's output, whose
        # reader waits until nobody can write to it any more
        nowhere = subprocess.DEVNULL
        command = [sys.executable, __file__]
        _guardians.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=nowhere, stderr=nowhere, start_new_session=True)
        )


def cluster_prefix() -> str:
    """Return how the folders of this run's clusters begin."""
    return f"phylactery-pg-{os.environ.get(RUN, 'alone')}-"


def _end_run() -> None:
    end = time.monotonic() + _LIMIT_SECONDS
    # Again, since a process may have been starting another one while it was killed
    while (found := _of_run()) and time.monotonic() < end:
        for pid in found:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.1)
    for place in {tempfile.gettempdir(), "/tmp"}:
        for folder in Path(place).glob(f"{cluster_prefix()}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _of_run() -> set[int]:
    """Return the processes with the run's id in their environment, and their descendants, which may have another."""
    own = f"{RUN}={os.environ[RUN]}".encode()
    parents = {int(one.name): _parent(one) for one in _PROC.iterdir() if one.name.isdecimal()}
    found = {pid for pid in parents if own in _environment(pid)}
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return found - {os.getpid()}


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return 0


def _environment(pid: int) -> list[bytes]:
    try:
        return (_PROC / str(pid) / "environ").read_bytes().split(b"\0")
    except OSError:  # it has ended, or belongs to another user
        return []


if __name__ == "__main__":
    sys.stdin.read()
    _end_run()
