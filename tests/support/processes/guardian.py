"""A process that outlives an interrupted run of the tests and ends what the run started.

A run that ends by itself stops its services and clusters. One that is killed cannot: a PostgreSQL cluster detaches from
the process that started it, and a forked service runs on. The guardian waits for the end of a pipe, which comes however
the run ends, then kills every process with the run's id in its environment, with its descendants, and removes the run's
clusters and temporary files. It finds processes in /proc: on Linux. Where the guardian was killed too, as at the end of
a container, the next run removes the temporary files, which would otherwise fill the memory that they are in.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

RUN: Final = "PHYLACTERY_TEST_RUN"
"""The variable that names the run to every process in it."""
_PROC: Final = Path("/proc")
_LIMIT_SECONDS: Final = 60.0
_guardians: list[subprocess.Popen[bytes]] = []
"""The guardian of this process, whose pipe stays open as long as it is here."""
_RUN_FOLDER: Final = "phylactery-run-"
_folders: list[tuple[Path, int]] = []
"""The folder of this run, and the descriptor that holds its lock; the guardian has it too."""


def run_folder(place: Path) -> Path:
    """Make the folder of this run's temporary files, and remove those of runs that are gone.

    A run, and after it its guardian, hold a lock on their folder.
    """
    for folder in place.glob(f"{_RUN_FOLDER}*"):
        with contextlib.suppress(OSError):  # another run holds it, or just removed it
            found = os.open(folder, os.O_RDONLY)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(found)
    made = Path(tempfile.mkdtemp(prefix=f".{_RUN_FOLDER}", dir=place))
    made.chmod(0o711)  # the account of a PostgreSQL cluster has to pass
    lock = os.open(made, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    # Only now under the name by which another run would find it
    folder = made.rename(place / made.name.removeprefix("."))
    _folders.append((folder, lock))
    return folder


def guard_run() -> None:
    """Name this run and start its guardian; where there is no /proc, only name it."""
    os.environ[RUN] = uuid.uuid4().hex[:12]
    if _PROC.is_dir():
        # In a session of its own, since the signal that ends the run must not reach it; without the run's output, whose
        # reader waits until nobody can write to it any more
        nowhere = subprocess.DEVNULL
        command = [sys.executable, __file__, *(str(folder) for folder, _ in _folders)]
        _guardians.append(
            subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=nowhere,
                stderr=nowhere,
                start_new_session=True,
                pass_fds=[lock for _, lock in _folders],
            )
        )


def cluster_prefix() -> str:
    """Return how the folders of this run's clusters begin."""
    return f"phylactery-pg-{os.environ.get(RUN, 'alone')}-"


def _end_run(run_folders: Sequence[str]) -> None:
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
    for run in map(Path, run_folders):
        for kept in run.iterdir():
            # The files of a test that failed can be looked at until the next run
            if not (kept.name.startswith("pytest-of-") and any(one.is_file() for one in kept.rglob("*"))):
                shutil.rmtree(kept, ignore_errors=True)
        with contextlib.suppress(OSError):
            run.rmdir()


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
    _end_run(sys.argv[1:])
