"""Recognition of a content's type by its bytes; the declared type is compared with the result."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Final

DOCX: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_DOCX_PARTS: Final = frozenset({"[Content_Types].xml", "word/document.xml"})
_MAX_PARTS: Final = 5_000
_ADTS_MASK, _ADTS, _MPEG_MASK, _MPEG = 0xF6, 0xF0, 0xE0, 0xE0
_BYTE_ORDER_MARK: Final = 0xFE
_FIRST: Final[tuple[tuple[bytes, str], ...]] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"OggS", "audio/ogg"),
    (b"ID3", "audio/mpeg"),
    (b"\x1a\x45\xdf\xa3", "audio/webm"),
    (b"fLaC", "audio/flac"),
    (b"#!AMR", "audio/amr"),
    (b"%PDF-", "application/pdf"),
)
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x1f]")
_RIFF: Final = {b"WEBP": "image/webp", b"WAVE": "audio/wav"}


def content_types(data: bytes) -> frozenset[str]:
    """Return the types that a content may have; empty if it is none of the accepted ones."""
    for mark, kind in _FIRST:
        if data.startswith(mark):
            return frozenset({kind})
    if data[:4] == b"RIFF" and data[8:12] in _RIFF:
        return frozenset({_RIFF[data[8:12]]})
    if data[4:8] == b"ftyp":
        return frozenset({"audio/mp4"})
    if data[:4] == b"PK\x03\x04":
        return frozenset({DOCX}) if _is_docx(data) else frozenset()
    if data[:1] == b"\xff" and len(data) > 1 and data[1] & _MPEG_MASK == _MPEG and data[1] < _BYTE_ORDER_MARK:
        return frozenset({"audio/aac"}) if data[1] & _ADTS_MASK == _ADTS else frozenset({"audio/mpeg"})
    return frozenset({"text/plain", "text/csv"}) if decoded(data) is not None else frozenset()


def decoded(data: bytes) -> str | None:
    """Return the text of a plain text file, or None if it is none: UTF-8, UTF-16 with a mark, or Windows-1252."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return _in(data, "utf-16")
    text = _in(data, "utf-8-sig")
    return _in(data, "cp1252") if text is None else text


def _in(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError:
        return None
    return None if _CONTROLS.search(text) else text


def _is_docx(data: bytes) -> bool:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            names = parts.namelist()
    except (zipfile.BadZipFile, ValueError, OSError, NotImplementedError):
        return False
    return len(names) <= _MAX_PARTS and set(names) >= _DOCX_PARTS
