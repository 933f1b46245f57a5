"""Forms with files, as the channels' servers receive them."""

from __future__ import annotations

from email.parser import BytesParser
from email.policy import HTTP
from typing import NamedTuple

from starlette.requests import Request


class Part(NamedTuple):
    """One field of a form."""

    content: bytes
    name: str
    """The name of the file, '' for a plain field."""
    mime: str


async def form_of(request: Request) -> dict[str, Part]:
    """Return the fields of a multipart form by name."""
    head = f"content-type: {request.headers.get('content-type', '')}\r\n\r\n".encode()
    message = BytesParser(policy=HTTP).parsebytes(head + await request.body())
    found: dict[str, Part] = {}
    for part in message.iter_parts():
        content = part.get_payload(decode=True)
        assert isinstance(content, bytes)
        field = part.get_param("name", "", "content-disposition")
        found[str(field)] = Part(content, part.get_filename() or "", part.get_content_type())
    return found
