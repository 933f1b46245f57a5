"""Attachments of a message: files from disk, and places."""

from __future__ import annotations

import mimetypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from phylactery.agent.v1 import chat_pb2

_KINDS: Final = chat_pb2.AttachmentKind
_DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_TYPES: Final = {
    ".pdf": "application/pdf",
    ".docx": _DOCX,
    ".csv": "text/csv",
    ".txt": "text/plain",
    ".md": "text/plain",
    ".log": "text/plain",
    ".ogg": "audio/ogg",
    ".opus": "audio/ogg",
    ".oga": "audio/ogg",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".m4a": "audio/mp4",
    ".webm": "audio/webm",
    ".flac": "audio/flac",
    ".aac": "audio/aac",
    ".amr": "audio/amr",
    ".webp": "image/webp",
}


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file sent with a message; kind is IMAGE, AUDIO, DOCUMENT or STICKER."""

    kind: str
    mime_type: str
    data: bytes
    filename: str = ""

    @classmethod
    def from_file(cls, path: Path) -> Attachment:
        """Read a file; its type is that of its name. Raise OSError."""
        mime_type = _TYPES.get(path.suffix.lower()) or mimetypes.guess_type(path.name)[0] or "application/octet-stream"
        family = mime_type.partition("/")[0]
        kind = family.upper() if family in {"image", "audio"} else "DOCUMENT"
        return cls(kind, mime_type, path.read_bytes(), path.name)


@dataclass(frozen=True, slots=True)
class Place:
    """A place sent with a message."""

    latitude: float
    longitude: float
    name: str = ""
    address: str = ""


def attachment_messages(attachments: Sequence[Attachment | Place]) -> list[chat_pb2.Attachment]:
    """Return attachments as messages. Raise ValueError for an unknown kind."""
    return [_message(one) for one in attachments]


def _message(one: Attachment | Place) -> chat_pb2.Attachment:
    if isinstance(one, Place):
        place = chat_pb2.Location(latitude=one.latitude, longitude=one.longitude, name=one.name, address=one.address)
        return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_LOCATION, location=place)
    kind = _KINDS.Value(f"ATTACHMENT_KIND_{one.kind}")
    return chat_pb2.Attachment(kind=kind, mime_type=one.mime_type, filename=one.filename, data=one.data)
