"""One agent per data folder and per database file, or several over a database which more than one process may serve.

The lock file says at once who came second, before a database is touched. But somebody may remove it under a running
agent, so where the database is a file that file is locked as well: whoever works on it holds it open all the time.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Collection
from pathlib import Path

from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.ids import new_id

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
        self._held: list[int] = []
        self._hold(
            path,
            fcntl.LOCK_SH if shared else fcntl.LOCK_EX,
            f"another agent works on {folder}; stop it, or give this one a folder of its own in AGENT_DATA_DIR",
        )
        if shared:
            try:
                self._life = Life(folder)
            except OSError:
                self.release()
                raise
        self.holder = self._life.holder if self._life is not None else new_id("agent")
        """The name this process holds leases under: no other ever had it."""

    def hold_database(self, path: Path) -> None:
        """Lock the database's own file as well, made where there is none. Raise FolderTakenError, OSError.

        Call it before the database is opened in this process and release after it is closed: SQLite's own locks are
        dropped by whoever closes the file in the same process.
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
        while self._held:
            os.close(self._held.pop())
