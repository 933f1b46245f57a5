"""Proof that an agent is dead: a file of its own that it keeps locked as long as it lives, beside the others'.

Over PostgreSQL a lease says only how long its holder may be alive. The kernel says more: a lock of a file is free once
the process that took it has ended, however it ended, and not before; one that stands still keeps it. So a holder's name
says by which kernel and on which file it locked, and who finds that very file free under that very kernel knows.
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

from phylactery_chassis.util.ids import new_id

LIVES: Final = "agents"
"""The folder, in the data folder, of the files of those that live, and of those nobody has buried yet."""
_KERNEL: Final = Path("/proc/sys/kernel/random/boot_id")


class Life:
    """One process among those that share a data folder."""

    def __init__(self, folder: Path) -> None:
        """Begins it. Raises OSError where the folder cannot be used."""
        self._folder = folder / LIVES
        self._folder.mkdir(mode=0o700, exist_ok=True)
        self._path, self._descriptor = self._begin()
        self.holder = f"{self._path.name}{_proof(self._descriptor)}"
        """The name this process holds leases under."""

    def _begin(self) -> tuple[Path, int]:
        while True:
            path = self._folder / new_id("agent")
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            if _locked(descriptor) and path.exists():
                return path, descriptor
            os.close(descriptor)  # somebody was burying, and took the empty file for one that is left over

    def end(self) -> None:
        """Ends it: from now on whatever this process still held is anybody's."""
        if self._descriptor >= 0:
            with contextlib.suppress(OSError):
                self._path.unlink(missing_ok=True)
            os.close(self._descriptor)
            self._descriptor = -1

    def bury(self, free: Callable[[Collection[str]], None]) -> None:
        """Hands every name a dead process held leases under to ``free``, and removes what those left in the folder.

        A process on another machine, or one whose file is not the one it locked, is never among them: its leases run
        out. Raises OSError, and what ``free`` raises; then they are handed over another time.
        """
        with contextlib.ExitStack() as files:
            left = [path for path in self._folder.iterdir() if path != self._path]
            dead = {path: proof for path in left if (proof := files.enter_context(_last_word(path))) is not None}
            free([f"{path.name}{proof}" for path, proof in dead.items() if proof])
            for path in dead:
                path.unlink(missing_ok=True)


@contextmanager
def _last_word(path: Path) -> Iterator[str | None]:
    """Answers, locked meanwhile, what a dead process' name ends with; nothing of one that lives."""
    try:
        descriptor = os.open(path, os.O_RDWR)
    except FileNotFoundError:  # somebody else buried it
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
    """Answers what tells this file under this kernel from every other; nothing where the kernel has no name."""
    try:
        kernel = _KERNEL.read_text(encoding="ascii").strip()
    except OSError:
        return ""
    file = os.fstat(descriptor)
    return "." + hashlib.sha256(f"{kernel} {file.st_dev} {file.st_ino}".encode()).hexdigest()[:32]
