"""Memory's log of erasures: a file beside the database, appended and fsynced before anything is erased."""

from __future__ import annotations

from pathlib import Path

from phylactery_chassis.erasure import log as erasure_log

from phylactery_memory.domain.erasure import Erasure


class ErasureLog(erasure_log.ErasureLog[Erasure]):
    """Appends intents and reads them back."""

    def __init__(self, path: Path) -> None:
        """Opens the log at path, making it where it is not there. Raises StartError where it is damaged."""
        super().__init__(path, Erasure, "MEMORY_ERASURE_LOG")
