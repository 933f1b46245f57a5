"""The proxy's folder: 0700, its files 0600, each written whole and flushed to disk before it takes its place."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path
from typing import Final

MAX_FILE_BYTES: Final = 32 * 1024 * 1024


class StateError(Exception):
    """Error for a folder or file that cannot be used; the message names it and says why."""


def default_folder(name: str) -> Path:
    """Return where a proxy of this name keeps its state."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "phylactery" / "mcp-proxy" / name


class StateFolder:
    """A folder that only its owner can read or write."""

    def __init__(self, path: Path) -> None:
        """Create the folder if there is none. Raise StateError if somebody else could write to it."""
        self.path = path
        try:
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = path.stat()
        except OSError as error:
            raise StateError(f"{path}: cannot be created ({error.strerror})") from None
        self._refuse_foreign(path, found)
        if stat.S_IMODE(found.st_mode) & 0o077:
            path.chmod(0o700)

    def file(self, name: str) -> Path:
        """Return the path of one of its files."""
        return self.path / name

    def read(self, name: str) -> bytes | None:
        """Return a file's content, None if there is none. Raise StateError."""
        path = self.file(name)
        try:
            with path.open("rb") as file:
                self._refuse_foreign(path, os.fstat(file.fileno()))
                data = file.read(MAX_FILE_BYTES + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StateError(f"{path}: cannot be read ({error.strerror})") from None
        if len(data) > MAX_FILE_BYTES:
            raise StateError(f"{path}: is longer than {MAX_FILE_BYTES} bytes")
        return data

    def write(self, name: str, content: bytes, *, replace: bool = True) -> None:
        """Write a file: afterwards it is complete and durable, or unchanged. Raise StateError, FileExistsError."""
        path, part = self.file(name), self.file(f".{name}.{os.urandom(4).hex()}.part")
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if replace:
                part.replace(path)
            else:
                os.link(part, path)
            self._sync()
        except FileExistsError:
            raise
        except OSError as error:
            raise StateError(f"{path}: cannot be written ({error.strerror})") from None
        finally:
            part.unlink(missing_ok=True)

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes, created once for all proxies of this folder. Raise StateError."""
        kept = self.read(name)
        if kept is None:
            with contextlib.suppress(FileExistsError):  # another proxy was faster, and its bytes are the ones
                self.write(name, os.urandom(32), replace=False)
            kept = self.read(name)
        if kept is None or len(kept) != 32:  # noqa: PLR2004 - as many as were written
            raise StateError(f"{self.file(name)}: is not a key; move it away")
        return kept

    def _sync(self) -> None:
        descriptor = os.open(self.path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    @staticmethod
    def _refuse_foreign(path: Path, found: os.stat_result) -> None:
        if found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o022:
            raise StateError(f"{path}: belongs to somebody else, or others can write to it; move it away")
