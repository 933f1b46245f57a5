"""The Python client sends files and places with a message."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_client import Attachment, PhylacteryClient, Place
from phylactery_client.errors import InvalidRequestError

from tests.support.agent.documents import pdf
from tests.support.agent.system import open_system


@pytest.mark.slow
async def test_files_and_places_are_sent_and_read(tmp_path: Path) -> None:
    invoice, notes = tmp_path / "invoice.PDF", tmp_path / "notes.md"
    invoice.write_bytes(pdf("Total: 42 euros"))
    notes.write_text("llamar a Ana")
    attachments = [Attachment.from_file(invoice), Attachment.from_file(notes), Place(-12.05, -77.04, "Plaza")]
    async with open_system(tmp_path / "system") as system, PhylacteryClient(system.target("agent")) as client:
        turn = await client.send_message("", attachments=attachments)
        assert all(text in turn.reply.text for text in ("Total: 42 euros", "llamar a Ana", "Plaza"))
        with pytest.raises(InvalidRequestError):
            await client.send_message("", attachments=[Attachment("IMAGE", "image/png", b"no image")])


def test_the_kind_and_type_of_a_file_are_those_of_its_name(tmp_path: Path) -> None:
    for name, expected in {
        "a.docx": ("DOCUMENT", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
        "a.csv": ("DOCUMENT", "text/csv"),
        "a.JPG": ("IMAGE", "image/jpeg"),
        "a.webp": ("IMAGE", "image/webp"),
        "a.opus": ("AUDIO", "audio/ogg"),
    }.items():
        (tmp_path / name).write_bytes(b"x")
        found = Attachment.from_file(tmp_path / name)
        assert (found.kind, found.mime_type, found.filename) == (*expected, name)
