"""Writing to files so that a line, or a file, is there whole and durable, or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def append_line(descriptor: int, line: str) -> None:
    """Append a line whole or not at all, and wait until it is on the disk. Raise OSError."""
    start = os.fstat(descriptor).st_size
    data = line.encode() + b"\n"
    try:
        while data:  # a disk that fills up takes a part, and refuses the rest
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    except OSError:
        os.ftruncate(descriptor, start)
        raise


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk. Raise OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def replace_file(path: Path, content: bytes) -> None:
    """Put a file in the place of another, whole and durably. Raise OSError."""
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
