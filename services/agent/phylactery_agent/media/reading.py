"""Reading of an attachment as text: documents in a process with limits, images and audio by the model's endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from phylactery_chassis.telemetry.logs import get_logger

from phylactery_agent.media.attachments import Attachment
from phylactery_agent.media.extraction import MAX_CHARACTERS, TOO_LARGE, UNREADABLE, DocumentError
from phylactery_agent.media.sniffing import DOCX, decoded

DOCUMENT_SECONDS: Final = 20.0
"""Maximum time of one document, the start of its process included."""
_MAX_OUTPUT: Final = 4 * MAX_CHARACTERS + 64
NO_TEXT: Final = "DOCUMENT_WITHOUT_TEXT"
TIMED_OUT: Final = "DOCUMENT_TIMEOUT"
_CUT: Final = "CUT"
_START: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from phylactery_agent.media.extraction import main; main()"
)
"""The reader has no environment, so it is told where this process has its modules from."""

_log = get_logger("media")


class MediaError(Exception):
    """Error for media that nothing here turns into text. Holds a stable code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class MediaPort(Protocol):
    """What turns images and audio into text. Raises MediaError."""

    async def describe(self, image: Attachment) -> str:
        """Return what is on an image, and the text in it."""
        ...

    async def transcribe(self, audio: Attachment) -> str:
        """Return what is said."""
        ...


@dataclass(frozen=True, slots=True)
class Content:
    """The text of an attachment; cut is True if there was more."""

    text: str
    cut: bool = False


class MediaReader:
    """Reader of attachments; one document is read at a time."""

    def __init__(self, port: MediaPort | None, *, seconds: float = DOCUMENT_SECONDS) -> None:
        """Take what reads images and audio; None means that nothing does."""
        self._port, self._seconds = port, seconds
        self._one = asyncio.Semaphore(1)
        self._warned = False

    async def read(self, attachment: Attachment) -> Content:
        """Return the text of an attachment. Raise MediaError, DocumentError."""
        if attachment.kind == "document":
            return await self._document(attachment)
        if attachment.kind == "location" and attachment.place is not None:
            place = attachment.place
            lines = (f"{place.latitude:.6f}, {place.longitude:.6f}", place.name, place.address)
            return Content("\n".join(line for line in lines if line))
        if self._port is None:
            raise MediaError("AUDIO_NOT_CONFIGURED" if attachment.kind == "audio" else "IMAGE_NOT_CONFIGURED")
        read = self._port.transcribe if attachment.kind == "audio" else self._port.describe
        text = (await read(attachment)).strip()
        if not text:
            raise MediaError("MEDIA_WITHOUT_TEXT")
        return Content(text[:MAX_CHARACTERS], len(text) > MAX_CHARACTERS)

    async def _document(self, attachment: Attachment) -> Content:
        if attachment.mime_type.startswith("text/"):
            text = decoded(attachment.data)
            if text is None:
                raise DocumentError(UNREADABLE)
            found = Content(text[:MAX_CHARACTERS], len(text) > MAX_CHARACTERS)
        else:
            async with self._one:
                found = await self._extracted(attachment)
        if not found.text.strip():
            raise DocumentError(NO_TEXT)
        return found

    async def _extracted(self, attachment: Attachment) -> Content:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-IBc",
            _START,
            _module_folders(),
            "docx" if attachment.mime_type == DOCX else "pdf",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            cwd="/",
            env={},
            start_new_session=True,  # so that it is ended together with whatever it might have started
        )
        try:
            async with asyncio.timeout(self._seconds):
                output = await _exchanged(process, attachment.data)
        except TimeoutError:
            raise DocumentError(TIMED_OUT) from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
        if len(output) > _MAX_OUTPUT:
            raise DocumentError(TOO_LARGE)
        head, _, rest = output.decode("utf-8", "replace").partition("\n")
        missing, separator, text = rest.partition("\n")
        if not separator:  # killed by one of its limits
            raise DocumentError(TOO_LARGE)
        if missing and not self._warned:
            self._warned = True
            _log.warning(
                "documents are read by a process that is not cut off from everything", not_cut_off_from=missing
            )
        if head not in {"", _CUT}:
            raise DocumentError(head)
        return Content(text, head == _CUT)


def _module_folders() -> str:
    """Return in JSON where this process has its modules from.

    The folder it was started in is none of them, although Python puts it first: the services' data may be below it.
    """
    here = Path.cwd()
    folders = [Path(folder).resolve() for folder in sys.path if folder]
    return json.dumps([str(one) for one in folders if one != here or (one / "phylactery_agent").is_dir()])


async def _exchanged(process: asyncio.subprocess.Process, data: bytes) -> bytes:
    """Send a document to its process and return what it writes, at most one byte more than is allowed."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None

    async def feed() -> None:
        with contextlib.suppress(ConnectionError):
            stdin.write(data)
            await stdin.drain()
        stdin.close()

    feeding = asyncio.create_task(feed())
    try:
        output = bytearray()
        while len(output) <= _MAX_OUTPUT and (piece := await stdout.read(64 * 1024)):
            output += piece
        return bytes(output)
    finally:
        feeding.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await feeding
