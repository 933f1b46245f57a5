"""The erasure log: a file next to the database, appended and fsynced before anything is erased.

A database backup still holds erased users; this file records who has been erased since. It contains no names: a user is
recognised by a hash under the file's own salt. It belongs to one machine, whose replicas may share it.
"""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Generic, TypeVar

from phylactery_chassis.db.errors import is_full
from phylactery_chassis.erasure.erasures import ErasureRecord
from phylactery_chassis.errors import StartError, StoreFull, Unavailable
from phylactery_chassis.util.durable_files import append_line, sync_folder

Record = TypeVar("Record", bound=ErasureRecord[Any])

_SALT_BYTES = 16


class ErasureLog(Generic[Record]):
    """Appends intents to erase and reads them back. One line is the salt; each other line is an erasure."""

    def __init__(self, path: Path, record: type[Record], setting: str) -> None:
        """Open the log at ``path``, creating it if missing. Raise StartError if it is damaged.

        ``record`` is the service's record type, ``setting`` the variable that sets another path.
        """
        self.path = path
        self.record, self._setting = record, setting
        self._lock = threading.Lock()
        try:
            self._salt = self._begin()
        except OSError as error:
            raise StartError(
                f"{path} cannot be the log of erasures ({error.strerror}); name another file in {self._setting}"
            ) from None

    @property
    def salt(self) -> str:
        """The salt under which users are hashed, 32 hex digits."""
        return self._salt

    def append(self, erasure: Record) -> None:
        """Append an erasure durably. Raise Unavailable STORE_UNAVAILABLE, StoreFull."""
        try:
            with self._lock, self._opened() as descriptor:
                append_line(descriptor, erasure.to_json())
        except OSError as error:
            if is_full(error):
                raise StoreFull("the log of erasures") from None
            raise Unavailable(
                "STORE_UNAVAILABLE",
                f"the log of erasures cannot be written ({error.strerror}), so nothing was erased; check {self.path}",
            ) from None

    def read(self) -> Sequence[Record]:
        """Return every logged erasure, the oldest first. Raise StartError if a line is damaged."""
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        return [self._parsed(number, line) for number, line in enumerate(lines[1:], 2)]

    def _parsed(self, number: int, line: str) -> Record:
        try:
            return self.record.from_json(line)
        except ValueError:
            raise self._damaged(number) from None

    def _begin(self) -> str:
        """Return the salt. Give a new file one, and remove a line cut off by a crash, which was never acknowledged."""
        with self._opened() as descriptor:
            content = self.path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) != len(content):
                os.ftruncate(descriptor, len(whole))
                os.fsync(descriptor)
            if not whole:
                append_line(descriptor, json.dumps({"salt": os.urandom(_SALT_BYTES).hex()}))
                sync_folder(self.path.parent)
        try:
            head = json.loads(self.path.read_bytes().partition(b"\n")[0])
            return str(bytes.fromhex(head["salt"]).hex())
        except (ValueError, KeyError, TypeError):
            raise self._damaged(1) from None

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file for the block under a lock that excludes other processes."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield descriptor
        finally:
            os.close(descriptor)

    def _damaged(self, number: int) -> StartError:
        return StartError(
            f"line {number} of {self.path} is not a valid erasure record, so erased data might reappear; restore the "
            f"file, or remove that line if you know whom it erased"
        )
