"""Effect journal: durable notes, outside the sandbox, of what a write or a mail is about to do.

A note is durable before the rename that is the effect, so recovery after a crash can tell whether it happened.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from phylactery_chassis.util.durable_files import sync_folder, write_whole


@dataclass(frozen=True, slots=True)
class JournalNote:
    """One write: its path, the file's SHA-256 before ("" if there was none) and after, and whether it is done.

    For a mail, ``after`` is its Message-ID, and path and before are empty.
    """

    path: str
    before: str
    after: str
    done: bool


class JournalUnavailableError(OSError):
    """Error for notes that cannot be read or written: an effect that is not noted must not begin."""


class EffectJournal:
    """Notes by effect key, one file each, in a folder of mode 0700.

    Every method except name_of raises JournalUnavailableError if the folder is missing, full or not writable.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._folder = folder

    @staticmethod
    def name_of(effect_key: str) -> str:
        """Return the file name for a key."""
        return hashlib.sha256(effect_key.encode()).hexdigest()

    def read(self, effect_key: str) -> JournalNote | None:
        """Return the note of a key, or None if no effect was about to happen."""
        with _journal_faults():
            try:
                raw = (self._folder / self.name_of(effect_key)).read_bytes()
            except FileNotFoundError:
                if not self._folder.is_dir():  # a missing journal does not prove that nothing was noted
                    raise
                return None
        return JournalNote(**json.loads(raw))

    def write(self, effect_key: str, note: JournalNote) -> None:
        """Write the note durably, atomically replacing the previous one."""
        with _journal_faults():
            write_whole(self._folder / self.name_of(effect_key), json.dumps(asdict(note)).encode())

    def remove(self, effect_key: str) -> None:
        """Remove a note durably, if there is one."""
        with _journal_faults():
            try:
                (self._folder / self.name_of(effect_key)).unlink()
            except FileNotFoundError:
                return
            sync_folder(self._folder)

    @contextmanager
    def exclusive(self) -> Iterator[None]:
        """Hold the journal's single write lock, across threads and processes."""
        with _journal_faults():
            descriptor = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with _journal_faults():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


@contextmanager
def _journal_faults() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise JournalUnavailableError(error.errno, error.strerror) from error
