"""Helpers for erasure tests: a sample record, and a search for files that still hold erased data."""

from __future__ import annotations

from pathlib import Path

from phylactery_memory.privacy.model import Erasure


def files_with(folder: Path, *texts: str) -> list[str]:
    """Return the files of a folder that contain one of the texts."""
    wanted = [text.encode() for text in texts]
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(text in path.read_bytes().lower() for text in wanted)
    ]


def erasure_of(number: int) -> Erasure:
    """Return an erasure record of ana that varies only in its id."""
    hashed = "sha256:" + "a" * 64
    return Erasure(
        f"era_{number}", hashed, "ab" * 16, "acme", requested_by_operator=False, request_us=5, request_hash=""
    )
