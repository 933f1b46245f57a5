"""Proof that an agent is dead: each agent keeps a file of its own locked for as long as it lives.

Over PostgreSQL a lease only says how long its holder may be alive. The kernel says more: a file lock is released when
the process that took it ends, however it ends, and not before; a stalled process keeps it. So a holder's name encodes
the kernel and the file it locked, and a process that finds that same file unlocked under that same kernel knows that
the holder is dead.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id

LIVES: Final = "agents"
"""The folder, in the data folder, with the lock files of live processes and of dead ones not yet reaped."""
_KERNEL: Final = Path("/proc/sys/kernel/random/boot_id")


class ProcessLock:
    """One process among those that share a data folder."""

    def __init__(self, folder: Path) -> None:
        """Create and lock the process's file. Raise OSError if the folder cannot be used."""
        self._folder = folder / LIVES
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._path, self._descriptor = self._begin()
        self.holder = f"{self._path.name}{_proof(self._descriptor)}"
        """The name under which this process holds leases."""

    def _begin(self) -> tuple[Path, int]:
        while True:
            path = self._folder / new_id("agent")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if _locked(descriptor) and path.exists():
                return path, descriptor
            os.close(descriptor)  # another process was reaping, and took the empty file for a leftover

    def end(self) -> None:
        """Remove and unlock the file: from now on other processes may take over what this process still held."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def reap_dead(self, free: Callable[[Collection[str]], None]) -> None:
        """Pass every name under which a dead process held leases to ``free``, and remove the files of those processes.

        Never included are a process on another machine, or one whose file is not the one it locked: their leases run
        out. Raise OSError and whatever ``free`` raises; the names are then passed another time.
        """
        with contextlib.ExitStack() as files:
            left = [path for path in self._folder.iterdir() if path != self._path]
            dead = {path: proof for path in left if (proof := files.enter_context(_last_word(path))) is not None}
            free([f"{path.name}{proof}" for path, proof in dead.items() if proof])
            for path in dead:
                path.unlink(missing_ok=True)


@contextmanager
def _last_word(path: Path) -> Iterator[str | None]:
    """Yield the proof suffix of a dead process's name, with its file locked meanwhile, or None if it is alive."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:  # another process reaped it
        yield None
        return
    try:
        yield _proof(descriptor) if _locked(descriptor) else None
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _proof(descriptor: int) -> str:
    """Return an identifier of this file under this kernel, or an empty string if the kernel has no boot id."""
    try:
        kernel = _KERNEL.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    file = os.fstat(descriptor)
    return "." + hashlib.sha256(f"{kernel} {file.st_dev} {file.st_ino}".encode()).hexdigest()[:32]


LOCK_FILE = "agent.lock"

_log = get_logger("folder")


class FolderTakenError(RuntimeError):
    """Another agent uses the same data folder."""


class FolderLock:
    """A lock on a folder, held for as long as the process lives: a dead holder's lock is free at once."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        """Take the lock, exclusively or shared. Raise FolderTakenError, OSError."""
        self._life: ProcessLock | None = None
        path = folder / LOCK_FILE
        self._held: list[int] = []
        self._hold(
            path,
            fcntl.LOCK_SH if shared else fcntl.LOCK_EX,
            f"another agent works on {folder}; stop it, or give this one a folder of its own in AGENT_DATA_DIR",
        )
        if shared:
            try:
                self._life = ProcessLock(folder)
            except OSError:
                self.release()
                raise
        self.holder = self._life.holder if self._life is not None else new_id("agent")
        """The name under which this process holds leases; no other process ever had it."""

    def hold_database(self, path: Path) -> None:
        """Lock the database file as well, creating it if it does not exist. Raise FolderTakenError, OSError.

        Call it before the database is opened in this process, and release after it is closed: SQLite's own locks are
        dropped when any descriptor of the file is closed in the same process.
        """
        self._hold(
            path,
            fcntl.LOCK_EX,
            f"another agent works on the database {path}; stop it, or give this one its own in AGENT_DATA_DIR or "
            "AGENT_DATABASE_URL",
        )

    def _hold(self, path: Path, kind: int, taken: str) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            raise FolderTakenError(taken) from None
        except OSError:
            os.close(descriptor)
            raise
        self._held.append(descriptor)

    def reap_dead(self, free: Callable[[Collection[str]], None]) -> None:
        """Pass the names of dead holders of leases to ``free``, if the folder is shared; see ProcessLock.reap_dead.

        Raise whatever ``free`` raises. An unreadable folder costs only time: the leases run out.
        """
        if self._life is None:
            return
        try:
            self._life.reap_dead(free)
        except OSError as error:
            _log.warning(
                "what dead agents were serving waits for their leases", file=error.filename, why=error.strerror
            )

    def release(self) -> None:
        """Release the folder."""
        if self._life is not None:
            self._life.end()
        while self._held:
            os.close(self._held.pop())
