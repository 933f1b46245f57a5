"""The tool send_file: a file of the workspace goes to the person of the conversation.

The effect is the event of the thread that names the file and its hash. Clients fetch the content by it, and what they
get has that hash: the file as it was when the call was proposed, or nothing.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from phylactery_agent.media.sniffing import DOCX, content_types
from phylactery_agent.ports import FileRefusedError
from phylactery_agent.tools.builtin.sandbox import Sandbox, split_path
from phylactery_agent.tools.builtin.versions import FileVersions, sha256
from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import SendFileArguments
from phylactery_agent.tools.specs.shown import printable

_ENDINGS: Final = {
    "text/plain": ("txt", "md", "log", "json", "yaml", "yml", "toml", "ini", "tsv", "csv"),
    "text/csv": ("csv",),
    "application/pdf": ("pdf",),
    DOCX: ("docx",),
    "image/png": ("png",),
    "image/jpeg": ("jpg", "jpeg"),
    "image/gif": ("gif",),
    "image/webp": ("webp",),
    "audio/ogg": ("ogg", "oga", "opus"),
    "audio/mpeg": ("mp3",),
    "audio/wav": ("wav",),
    "audio/mp4": ("m4a", "mp4"),
    "audio/webm": ("webm",),
    "audio/flac": ("flac",),
    "audio/aac": ("aac",),
    "audio/amr": ("amr",),
}
"""The endings a name may have, by the type of the content; the first is added to a name that has none of them."""
_CSV: Final = "text/csv"


class SendingTools:
    """The tool over people's workspaces."""

    def __init__(self, sandbox_of: Callable[[Invocation], Sandbox]) -> None:
        """sandbox_of returns the workspace of an invocation's person."""
        self._sandbox_of = sandbox_of

    async def send_file(self, invocation: Invocation) -> str:
        """Send a file, once per effect key, and return its description.

        Raises:
            ToolFailedError: NOT_FOUND, CHANGED_SINCE if it is not what it was when the call was proposed, FILE_EMPTY,
                FILE_TYPE_REFUSED, HANDED_OFF, FILES_UNAVAILABLE where nothing sends files, or a code of Sandbox.
        """
        args = arguments_of(invocation, SendFileArguments)
        if invocation.files is None:
            raise ToolFailedError("FILES_UNAVAILABLE", "this agent sends no files")
        data = await asyncio.to_thread(_read, self._sandbox_of(invocation), args.path)
        found = sha256(data)
        if not hmac.compare_digest(found, invocation.content_hash):
            raise ToolFailedError("CHANGED_SINCE", "the file has been changed since")
        mime_type = type_of(data, args.path)
        name = shown_name(args.path, mime_type)
        try:
            sent = await invocation.files.send(name, mime_type, len(data), found, args.path, key=invocation.effect_key)
        except FileRefusedError as error:
            raise ToolFailedError(error.reason, error.message) from error
        return json.dumps(asdict(sent), ensure_ascii=False)


def content_of(versions: FileVersions, content_hash: str) -> bytes | None:
    """Return a user's kept version with this hash, or None if there is none."""
    try:
        known = any(content_hash == change.before for change in versions.changes())
        return versions.content(content_hash) if known else None
    except (OSError, ValueError):
        return None


def type_of(data: bytes, path: str) -> str:
    """Return the type of a content; its name only tells a table from another text. Raise ToolFailedError."""
    if not data:
        raise ToolFailedError("FILE_EMPTY", "the file is empty")
    types = content_types(data)
    if not types:
        raise ToolFailedError("FILE_TYPE_REFUSED", "files of this type are not sent")
    if _CSV in types:
        return _CSV if path.lower().endswith(".csv") else "text/plain"
    return min(types)


def shown_name(path: str, mime_type: str) -> str:
    """Return the name under which a file is sent: of printable characters, with an ending that fits its content."""
    endings = _ENDINGS[mime_type]
    name = printable(split_path(path)[-1])
    return name if name.rpartition(".")[2].lower() in endings and "." in name else f"{name}.{endings[0]}"


def _read(sandbox: Sandbox, path: str) -> bytes:
    with sandbox.parent(path) as (folder, name):
        data = sandbox.read_bytes(folder, name)
    if data is None:
        raise ToolFailedError("NOT_FOUND", "there is no such file or folder")
    return data
