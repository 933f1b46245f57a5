"""The graph's interface to the files that the agent sends in a thread."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


class FileRefusedError(Exception):
    """Error for a file that is not sent. Holds a stable code and a sentence."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason, self.message = reason, message


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file as it was permitted to be sent: the content is the one with this hash, wherever it is read from."""

    file_id: str
    name: str
    mime_type: str
    size_bytes: int
    sha256: str
    path: str


class SentFiles(Protocol):
    """The files that one turn sends. Raises Unavailable if the store fails."""

    async def send(self, name: str, mime_type: str, size_bytes: int, sha256: str, path: str, *, key: str) -> SentFile:
        """Store that a file is sent, once per key: the same key again returns the existing one.

        Raise FileRefusedError with HANDED_OFF.
        """
        ...
