"""One agent per data folder, or several that share a database which more than one process may serve."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK_FILE = "agent.lock"


class FolderTakenError(RuntimeError):
    """Another agent works on the same data folder."""


class FolderLock:
    """A lock on a folder, held as long as the process lives: a dead holder's lock is free at once."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        """Takes the lock, alone or beside others that share it. Raises FolderTakenError."""
        path = folder / LOCK_FILE
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise FolderTakenError(
                f"another agent works on {folder}; stop it, or give this one a folder of its own in AGENT_DATA_DIR"
            ) from None

    def release(self) -> None:
        """Gives the folder free."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
