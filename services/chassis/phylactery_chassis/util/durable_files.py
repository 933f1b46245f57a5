"""Atomic, durable file writes: a line or a file is complete and on disk, or absent."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


def append_line(descriptor: int, line: str) -> None:
    """Append a line atomically and wait until it is on disk. Raise OSError."""
    start = os.fstat(descriptor).st_size
    data = line.encode() + b"\n"
    try:
        while data:  # a disk that fills up writes a part and refuses the rest
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def sync_folder(folder: Path) -> None:
    """Flush a directory's entries to disk. Raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def whole_file(path: Path, *, mode: int = 0o600, replace: bool = True) -> Iterator[BinaryIO]:
    """Give a file to write: after the block it is at path, complete and durable, or nothing has changed.

    Without replace raise FileExistsError if there is one by then. Raise OSError.
    """
    part = path.with_name(f".{path.name}.{os.urandom(4).hex()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if replace:
            part.replace(path)
        else:
            os.link(part, path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)


def write_whole(path: Path, content: bytes, *, mode: int = 0o600, replace: bool = True) -> None:
    """Write a whole_file with this content. Raise FileExistsError, OSError."""
    with whole_file(path, mode=mode, replace=replace) as file:
        file.write(content)
