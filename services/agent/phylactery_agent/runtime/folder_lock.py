"""One agent per data folder."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

LOCK_FILE = "agent.lock"


class FolderTakenError(RuntimeError):
    """Another agent works on the same data folder."""


class FolderLock:
    """An exclusive lock on a folder, held as long as the process lives: a dead holder's lock is free at once."""

    def __init__(self, folder: Path) -> None:
        """Takes the lock. Raises FolderTakenError."""
        path = folder / LOCK_FILE
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
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
