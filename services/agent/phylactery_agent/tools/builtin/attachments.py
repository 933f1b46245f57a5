"""The tool read_attachment: fetches an attachment from memory and returns its content as text."""

from __future__ import annotations

import asyncio
from typing import Final

from phylactery_agent.media.attachments import AttachmentError, unpack
from phylactery_agent.media.extraction import DocumentError
from phylactery_agent.media.reading import MediaError, MediaReader
from phylactery_agent.tools.builtin.texts import asked_of_memory
from phylactery_agent.tools.contract import Invocation, ToolFailedError, arguments_of
from phylactery_agent.tools.specs import ReadAttachmentArguments

_NOT_ONE: Final = "ATTACHMENT_INVALID"


class AttachmentTools:
    """The read_attachment tool over one reader of media."""

    def __init__(self, reader: MediaReader) -> None:
        self._reader = reader

    async def read_attachment(self, invocation: Invocation) -> str:
        """Return a line with kind, type and name of an attachment, and below it its content as text.

        Raises:
            ToolFailedError: It is no attachment of this person (ATTACHMENT_INVALID, OUTPUT_NOT_FOUND), it cannot be
            read as text (DOCUMENT_…, MEDIA_…), nothing here reads its kind (IMAGE_NOT_CONFIGURED,
            AUDIO_NOT_CONFIGURED), or memory does not answer (MEMORY_UNAVAILABLE).
        """
        args = arguments_of(invocation, ReadAttachmentArguments)
        text = await asked_of_memory(invocation.outputs.fetch_output(args.attachment))
        try:
            attachment = await asyncio.to_thread(unpack, text)
            content = await self._reader.read(attachment)
        except AttachmentError as error:
            raise ToolFailedError(_NOT_ONE, str(error)) from None
        except (DocumentError, MediaError) as error:
            raise ToolFailedError(error.code, "the attachment cannot be read as text") from None
        name = "".join(one for one in attachment.filename if one.isprintable())
        about = (" ".join(part for part in (attachment.kind, attachment.mime_type) if part), name)
        cut = ("cut",) if content.cut else ()
        return f"[{'; '.join(part for part in (*about, *cut) if part)}]\n{content.text}"
