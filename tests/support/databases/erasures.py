"""What tests of erasures share: a record of one, and which files still hold what was erased."""

from __future__ import annotations

from pathlib import Path

from phylactery_memory.privacy.model import Erasure


def files_with(folder: Path, *texts: str) -> list[str]:
    """Return which files hold one of the texts, whatever they are."""
    wanted = [text.encode() for text in texts]
    return [
        path.name
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(text in path.read_bytes().lower() for text in wanted)
    ]


def erasure_of(number: int) -> Erasure:
    """Return the record of an erasure of ana, the same but for its id."""
    hashed = "sha256:" + "a" * 64
    return Erasure(
        f"era_{number}", hashed, "ab" * 16, "acme", requested_by_operator=False, request_us=5, request_hash=""
    )
