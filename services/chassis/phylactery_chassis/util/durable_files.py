"""Atomic, durable file writes: a line or a file is complete and on disk, or absent."""

from __future__ import annotations

import os
from pathlib import Path


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


def replace_file(path: Path, content: bytes) -> None:
    """Replace a file atomically and durably. Raise OSError."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
    sync_folder(path.parent)
