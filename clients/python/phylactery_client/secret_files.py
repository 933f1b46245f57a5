"""Files with a secret of a client's: a token, or a header's value."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

_OTHERS, _OTHERS_WRITE = 0o077, 0o022


def read_secret_file(path: Path, limit: int = 64 * 1024) -> bytes:
    """Return the content of a file with a secret, at most ``limit`` bytes and one more.

    A file of somebody else's is mounted, and its owner decides who may read it; nobody else may write it. The services
    read theirs by the same rule. Raise OSError; if others may read the file, its strerror names the remedy.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        ours = found.st_uid == os.geteuid()
        mode = stat.S_IMODE(found.st_mode)
        if stat.S_ISREG(found.st_mode) and mode & (_OTHERS if ours else _OTHERS_WRITE):
            fault, change = ("accessible to", "600") if ours else ("writable by", "go-w")
            raise PermissionError(
                errno.EACCES,
                f"mode {mode:04o} makes it {fault} others; run: chmod {change} {path}, or set its mode where it is "
                "mounted from (defaultMode: 0400)",
            )
        return file.read(limit + 1)
