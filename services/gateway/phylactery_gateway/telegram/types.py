"""Types of files as people's applications name them, and whether a content begins as its type does.

The Bot API names no hash, and no type but the sender's word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_SAME: Final[Mapping[str, str]] = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-m4a": "audio/mp4",
    "audio/m4a": "audio/mp4",
    "audio/opus": "audio/ogg",
    "audio/x-aac": "audio/aac",
    "text/markdown": "text/plain",
    "text/x-markdown": "text/plain",
    "text/x-log": "text/plain",
    "text/comma-separated-values": "text/csv",
    "application/csv": "text/csv",
}
_SYNC: Final = tuple(bytes([0xFF, second]) for second in range(0xE0, 0xFE))
"""The first two bytes of a frame of MPEG audio."""
_BEGINNINGS: Final[Mapping[str, tuple[int, tuple[bytes, ...]]]] = {
    "application/pdf": (0, (b"%PDF-",)),
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": (0, (b"PK\x03\x04",)),
    "image/png": (0, (b"\x89PNG\r\n\x1a\n",)),
    "image/jpeg": (0, (b"\xff\xd8\xff",)),
    "image/webp": (8, (b"WEBP",)),
    "audio/ogg": (0, (b"OggS",)),
    "audio/mpeg": (0, (b"ID3", *_SYNC)),
    "audio/aac": (0, _SYNC),
    "audio/amr": (0, (b"#!AMR",)),
    "audio/mp4": (4, (b"ftyp",)),
    "video/mp4": (4, (b"ftyp",)),
    "video/3gpp": (4, (b"ftyp",)),
}
"""Where the mark of a type is, and what it may be."""


def plain_type(named: str) -> str:
    """Return a type by the name it has everywhere, without parameters."""
    essence = named.partition(";")[0].strip().lower()
    return _SAME.get(essence, essence)


def looks_like(mime: str, data: bytes) -> bool:
    """Return True if a content begins as this type does; a text has no mark, and no NUL."""
    place, marks = _BEGINNINGS.get(mime, (0, ()))
    return data[place:].startswith(marks) if marks else bool(data) and b"\0" not in data
