"""Previous versions of files, kept per user and outside the sandbox, so that a change can be undone.

A user's folder holds `changes.json`, the user's changes from the oldest to the newest, and each stored content once, in
a file named by its SHA-256. Writers hold the lock of the effect journal.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Final

from phylactery_chassis.util.durable_files import write_whole

from phylactery_agent.tools.named_folders import make_person_folder, people_below, person_folder, remove_person_folder

MAX_CHANGES: Final = 1_000
"""Changes kept per user, including those of new files: all are read at every change."""
_INDEX: Final = "changes.json"


@dataclass(frozen=True, slots=True)
class VersionLimits:
    """Limits on versions kept per file and on bytes kept per user. The newest version is always kept."""

    per_file: int
    bytes_per_user: int


@dataclass(frozen=True, slots=True)
class FileChange:
    """One change of a file: SHA-256 and size before it, SHA-256 after it; "" means that there was no file.

    ``thread_id`` is the conversation that requested it, ``at_us`` when it happened, in microseconds since the epoch; ""
    and 0 if an older release stored it.
    """

    effect_key: str
    path: str
    before: str
    size: int
    after: str
    thread_id: str = ""
    at_us: int = 0


class FileVersions:
    """The changes of one user, and the previous contents of the files."""

    def __init__(self, folder: Path, limits: VersionLimits, make: Callable[[], object]) -> None:
        """``make`` creates the folder durably, if it is missing."""
        self._folder, self._limits, self._make = folder, limits, make

    def changes(self) -> Sequence[FileChange]:
        """Return the stored changes, oldest first."""
        try:
            raw = (self._folder / _INDEX).read_bytes()
        except FileNotFoundError:
            return ()
        return [FileChange(**change) for change in json.loads(raw)]

    def content(self, sha: str) -> bytes | None:
        """Return a stored content, or None if it is missing or no longer matches its hash."""
        try:
            data = (self._folder / sha).read_bytes()
        except FileNotFoundError:
            return None
        return data if sha256(data) == sha else None

    def keep(self, change: FileChange, before: bytes | None) -> None:
        """Store a change and the content it replaces durably; drop the oldest beyond the limits."""
        self._make()
        if before is not None and self.content(change.before) is None:
            write_whole(self._folder / change.before, before)
        self._store([*self.changes(), change])

    def holds(self, change: FileChange) -> bool:
        """Return True if a change and the content it replaced are stored and can be read back."""
        return change in self.changes() and (not change.before or self.content(change.before) is not None)

    def is_usable(self) -> bool:
        """Return True if changes can be stored, as far as that shows without storing one."""
        try:
            self._make()
            self.changes()
        except (OSError, ValueError):
            return False
        return True

    def forget_before(self, before_us: int) -> None:
        """Drop the changes from before a time, with the contents that only they need."""
        changes = self.changes()
        left = [change for change in changes if not 0 < change.at_us < before_us]
        if len(left) < len(changes):
            self._store(left)

    def drop(self, effect_key: str) -> None:
        """Remove a change that did not happen."""
        changes = self.changes()
        left = [change for change in changes if change.effect_key != effect_key]
        if len(left) < len(changes):
            self._store(left)

    def _store(self, changes: Sequence[FileChange]) -> None:
        """Write the changes first, then remove unreferenced contents: a crash leaves too much, never too little."""
        kept = list(self._within_limits(changes))
        kept.reverse()
        write_whole(self._folder / _INDEX, json.dumps([asdict(change) for change in kept]).encode())
        needed = {_INDEX, *(change.before for change in kept)}
        for path in self._folder.iterdir():
            if path.name not in needed:
                path.unlink()

    def _within_limits(self, changes: Sequence[FileChange]) -> Iterator[FileChange]:
        """Yield the newest changes within the limits, newest first."""
        per_path: Counter[str] = Counter()
        counted: set[str] = set()
        total = 0
        for number, change in enumerate(reversed(changes)):
            per_path[change.path] += 1
            size = 0 if change.before in counted else change.size
            if number and (number >= MAX_CHANGES or total + size > self._limits.bytes_per_user):
                return
            if per_path[change.path] <= self._limits.per_file:
                counted.add(change.before)
                total += size
                yield change


class VersionStore:
    """The versions of every user of every tenant, below one folder."""

    def __init__(self, root: Path, limits: VersionLimits) -> None:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._root, self._limits = root, limits

    def of(self, tenant: str, user_id: str) -> FileVersions:
        """Return the versions of one user."""
        make = partial(make_person_folder, self._root, tenant, user_id)
        return FileVersions(person_folder(self._root, tenant, user_id), self._limits, make)

    def users(self) -> Sequence[tuple[str, str]]:
        """Return tenant and user of every user with stored versions."""
        return list(people_below(self._root))

    def forget(self, tenant: str, user_id: str) -> None:
        """Durably remove all versions of one user."""
        remove_person_folder(self._root, tenant, user_id)


def sha256(data: bytes | None) -> str:
    """Return the SHA-256 of a content in hex, or "" if there is none."""
    return "" if data is None else hashlib.sha256(data).hexdigest()
