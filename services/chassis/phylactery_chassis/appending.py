"""Appending lines to a file so that each is there whole and durable, or not at all."""

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
