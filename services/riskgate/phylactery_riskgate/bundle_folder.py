"""Watches the folder of a bundle for changes, without reading what is in it."""

from __future__ import annotations

import os
from pathlib import Path

from phylactery_riskgate.domain.bundle_files import MAX_FILES

_Stamp = tuple[tuple[str, int, int, int], ...]


class FolderWatch:
    """Says when a folder has changed and then stood still: a folder in the middle of being written is no bundle yet."""

    def __init__(self, folder: Path) -> None:
        """Takes the folder as it stands: it was read already."""
        self.folder = folder
        self._handled: _Stamp | None = _stamp(folder)
        self._seen = self._handled

    def changed(self, *, now: bool = False) -> bool:
        """Says whether to read the folder: it is not as it was when it was read, and is as it was at the last look.

        With ``now`` somebody says that it is complete.
        """
        before, self._seen = self._seen, _stamp(self.folder)
        if not now and (self._seen == self._handled or self._seen != before):
            return False
        self._handled = self._seen
        return True

    def forget(self) -> None:
        """Lets the next look find the folder changed."""
        self._handled = None


def _stamp(folder: Path) -> _Stamp:
    """Answers what tells one state of a folder from another: every name with inode, time of change and size."""
    found: list[tuple[str, int, int, int]] = []
    for place, folders, names in os.walk(os.path.realpath(folder)):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            try:
                now = os.stat(os.path.join(place, name))  # noqa: PTH116, PTH118 - a thousand of them every second
            except OSError:
                continue
            found.append((os.path.join(place, name), now.st_ino, now.st_mtime_ns, now.st_size))  # noqa: PTH118
            if len(found) > MAX_FILES:
                return tuple(found)
    return tuple(found)
