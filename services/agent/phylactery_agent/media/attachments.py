"""Attachments of a message: limits, checks of the declared type, and the form in which memory keeps them."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from phylactery_agent.media.sniffing import DOCX, content_types

Kind = Literal["image", "audio", "document", "location", "sticker"]

MAX_ATTACHMENTS: Final = 8
MAX_BYTES: Final = 8 * 1024 * 1024
"""Maximum size of one attachment."""
MAX_TOTAL_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of all attachments of one message."""
MAX_NAME: Final = 255
MAX_ADDRESS: Final = 1_000

TYPES: Final[dict[str, frozenset[str]]] = {
    "image": frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"}),
    "audio": frozenset(
        {
            "audio/ogg",
            "audio/mpeg",
            "audio/wav",
            "audio/mp4",
            "audio/webm",
            "audio/flac",
            "audio/aac",
            "audio/amr",
        }
    ),
    "document": frozenset({"text/plain", "text/csv", "application/pdf", DOCX}),
    "sticker": frozenset({"image/webp"}),
}
"""The accepted types by kind; a location has none."""
TOOL_NAME: Final = "attachment"
"""The origin under which memory keeps an attachment."""
_VERSION: Final = 1


class AttachmentError(Exception):
    """Error for an attachment that is not accepted, or whose kept form is not one."""


@dataclass(frozen=True, slots=True)
class Place:
    """A location."""

    latitude: float
    longitude: float
    name: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class Attachment:
    """One attachment as it was sent."""

    kind: Kind
    mime_type: str
    filename: str
    data: bytes
    place: Place | None = None

    @property
    def sha256(self) -> str:
        """Return the hash that identifies the content and its description."""
        described = json.dumps([self.kind, self.mime_type, self.filename, _place(self.place)]).encode()
        return hashlib.sha256(hashlib.sha256(self.data).digest() + described).hexdigest()


def check(attachment: Attachment) -> None:
    """Raise AttachmentError unless the content is what the attachment declares."""
    if attachment.kind == "location":
        if attachment.place is None or attachment.data or attachment.mime_type:
            raise AttachmentError("a location has a place, and neither data nor mime_type")
        return
    if attachment.place is not None:
        raise AttachmentError("only a location has a place")
    if not attachment.data:
        raise AttachmentError("it is empty")
    accepted = TYPES[attachment.kind]
    if attachment.mime_type not in accepted:
        raise AttachmentError("mime_type is none of this kind's; AttachmentKind lists those")
    if attachment.mime_type not in content_types(attachment.data):
        raise AttachmentError(f"the content is not {attachment.mime_type}")


def pack(attachment: Attachment) -> str:
    """Return the text that memory keeps: one line of description, and the content in base64."""
    description = {
        "attachment": _VERSION,
        "kind": attachment.kind,
        "mime_type": attachment.mime_type,
        "filename": attachment.filename,
        "sha256": hashlib.sha256(attachment.data).hexdigest(),
        "place": _place(attachment.place),
    }
    return f"{json.dumps(description)}\n{base64.b64encode(attachment.data).decode('ascii')}"


def unpack(text: str) -> Attachment:
    """Return the attachment of a kept text. Raise AttachmentError if the text is another output, or was altered."""
    head, _, body = text.partition("\n")
    try:
        description = json.loads(head)
        if description["attachment"] != _VERSION or description["kind"] not in get_args(Kind):
            raise AttachmentError("it is no attachment")
        data = base64.b64decode(body, validate=True)
        place = Place(*description["place"]) if description["place"] else None
        found = Attachment(description["kind"], description["mime_type"], description["filename"], data, place)
        sha256 = description["sha256"]
    except (ValueError, KeyError, TypeError, binascii.Error, RecursionError):
        raise AttachmentError("it is no attachment") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise AttachmentError("its content does not match its hash")
    return found


def _place(place: Place | None) -> Sequence[object]:
    return [place.latitude, place.longitude, place.name, place.address] if place is not None else []
