"""Really built files for tests of attachments: PDF, DOCX, images and audio, ordinary and hostile."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from typing import Any

from docx import Document
from phylactery.agent.v1 import chat_pb2
from phylactery_agent.media.sniffing import DOCX
from pypdf import PdfReader, PdfWriter

PDF = "application/pdf"
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
OGG = b"OggS" + bytes(64)
WEBP = b"RIFF\x10\x00\x00\x00WEBP" + bytes(16)
_KINDS = chat_pb2.AttachmentKind


def pdf(*lines: str, streams: list[bytes] | None = None) -> bytes:
    """Return a PDF with one page of these lines, or with the given compressed content stream."""
    shown = b"".join(b"(%s) Tj T* " % line.encode("latin-1") for line in lines)
    content = streams[0] if streams else zlib.compress(b"BT /F1 12 Tf 72 720 Td 14 TL " + shown + b"ET")
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        (
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
            b" /Resources << /Font << /F1 5 0 R >> >> >>"
        ),
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    out, places = io.BytesIO(b"%PDF-1.4\n"), []
    out.seek(0, io.SEEK_END)
    for number, body in enumerate(objects, 1):
        places.append(out.tell())
        out.write(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    start = out.tell()
    out.write(b"xref\n0 6\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places))
    out.write(b"trailer << /Size 6 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF" % start)
    return out.getvalue()


def locked_pdf(password: str) -> bytes:
    """Return an encrypted PDF."""
    writer, out = PdfWriter(), io.BytesIO()
    writer.append(PdfReader(io.BytesIO(pdf("secret"))))
    writer.encrypt(password, algorithm="RC4-128")
    writer.write(out)
    return out.getvalue()


def bomb_pdf(megabytes: int) -> bytes:
    """Return a small PDF whose content stream unpacks to many megabytes."""
    packer = zlib.compressobj(9)
    parts = [packer.compress(b"(a) Tj " * 150_000) for _ in range(megabytes)]
    return pdf(streams=[b"".join([*parts, packer.flush()])])


def docx(*lines: str, table: list[list[str]] | None = None) -> bytes:
    """Return a DOCX with these paragraphs, and a table."""
    document, out = Document(), io.BytesIO()
    for line in lines:
        document.add_paragraph(line)
    if table:
        cells = document.add_table(rows=len(table), cols=len(table[0]))
        for row, values in zip(cells.rows, table, strict=True):
            for cell, value in zip(row.cells, values, strict=True):
                cell.text = value
    document.save(out)
    return out.getvalue()


def changed_docx(xml: bytes) -> bytes:
    """Return a DOCX whose main part is this XML."""
    out = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(docx("x"))) as old,
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for part in old.infolist():
            new.writestr(part, xml if part.filename == "word/document.xml" else old.read(part))
    return out.getvalue()


def with_lying_sizes(data: bytes, name: bytes, size: int) -> bytes:
    """Return an archive whose directory declares another size for a part."""
    changed = bytearray(data)
    at = changed.rindex(name)
    changed[at - 46 + 24 : at - 46 + 28] = struct.pack("<I", size)
    return bytes(changed)


def document(data: bytes, mime_type: str = PDF, filename: str = "") -> chat_pb2.Attachment:
    """Return a document as a client sends it."""
    return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_DOCUMENT, mime_type=mime_type, data=data, filename=filename)


def image(data: bytes = PNG, mime_type: str = "image/png", **more: Any) -> chat_pb2.Attachment:
    """Return an image as a client sends it."""
    return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_IMAGE, mime_type=mime_type, data=data, **more)


def audio(data: bytes = OGG, mime_type: str = "audio/ogg") -> chat_pb2.Attachment:
    """Return a voice message as a client sends it."""
    return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_AUDIO, mime_type=mime_type, data=data)


def sticker() -> chat_pb2.Attachment:
    """Return a sticker as a client sends it."""
    return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_STICKER, mime_type="image/webp", data=WEBP)


def location(latitude: float = -12.046, longitude: float = -77.043, **more: Any) -> chat_pb2.Attachment:
    """Return a place as a client sends it."""
    place = chat_pb2.Location(latitude=latitude, longitude=longitude, **more)
    return chat_pb2.Attachment(kind=_KINDS.ATTACHMENT_KIND_LOCATION, location=place)


WORD = DOCX
