"""One agent per data folder, or several that share a database which more than one process may serve."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection
from pathlib import Path

from phylactery_chassis.ids import new_id
from phylactery_chassis.logs import get_logger

from phylactery_agent.runtime.life import Life

LOCK_FILE = "agent.lock"

_log = get_logger("folder")


class FolderTakenError(RuntimeError):
    """Another agent works on the same data folder."""


class FolderLock:
    """A lock on a folder, held as long as the process lives: a dead holder's lock is free at once."""

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        """Takes the lock, alone or beside others that share it. Raises FolderTakenError, OSError."""
        self._life: Life | None = None
        path = folder / LOCK_FILE
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            os.close(self._descriptor)
            raise FolderTakenError(
                f"another agent works on {folder}; stop it, or give this one a folder of its own in AGENT_DATA_DIR"
            ) from None
        if shared:
            try:
                self._life = Life(folder)
            except OSError:
                self.release()
                raise
        self.holder = self._life.holder if self._life is not None else new_id("agent")
        """The name this process holds leases under: no other ever had it."""

    def bury(self, free: Callable[[Collection[str]], None]) -> None:
        """Hands the names dead processes held leases under to ``free``, where others share the folder; see Life.bury.

        Raises what ``free`` raises. A folder that cannot be looked at costs time alone: leases run out.
        """
        if self._life is None:
            return
        try:
            self._life.bury(free)
        except OSError as error:
            _log.warning(
                "what dead agents were serving waits for their leases", file=error.filename, why=error.strerror
            )

    def release(self) -> None:
        """Gives the folder free."""
        if self._life is not None:
            self._life.end()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
