"""Text of PDF and DOCX documents. Runs in a process of its own, because a document is written by anybody."""

from __future__ import annotations

import io
import resource
import sys
import zipfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from phylactery_agent.media.confinement import confine
from phylactery_agent.media.sniffing import DOCX

if TYPE_CHECKING:
    from docx.blkcntnr import BlockItemContainer
    from docx.document import Document as DocxDocument

MAX_CHARACTERS: Final = 1_000_000
"""Characters of text returned of one document; more is cut."""
MEMORY_BYTES: Final = 768 * 1024 * 1024
CPU_SECONDS: Final = 15
_MAX_UNPACKED: Final = 96 * 1024 * 1024
_MAX_RATIO: Final = 200
_SMALL: Final = 1024 * 1024
"""A part of this size may be packed as tightly as it likes."""
_MAX_PAGES: Final = 2_000
_MAX_DEPTH: Final = 8

ENCRYPTED: Final = "DOCUMENT_ENCRYPTED"
TOO_LARGE: Final = "DOCUMENT_TOO_LARGE"
UNREADABLE: Final = "DOCUMENT_UNREADABLE"


class DocumentError(Exception):
    """Error for a document that yields no text. Holds a stable code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


def extracted(data: bytes, mime_type: str) -> tuple[str, bool]:
    """Return the text of a document, and whether it was cut. Raise DocumentError, or what the library raises."""
    parts = _pdf(data) if mime_type == "application/pdf" else _docx(data)
    found: list[str] = []
    size = 0
    for part in parts:
        found.append(part)
        size += len(part) + 1
        if size > MAX_CHARACTERS:
            return "\n".join(found)[:MAX_CHARACTERS], True
    return "\n".join(found), False


def _pdf(data: bytes) -> Iterator[str]:
    from pypdf import PdfReader  # late: only the process that reads documents needs it

    reader = PdfReader(io.BytesIO(data), strict=False)
    if reader.is_encrypted and not reader.decrypt(""):
        raise DocumentError(ENCRYPTED)
    for number, page in enumerate(reader.pages):
        if number == _MAX_PAGES:
            raise DocumentError(TOO_LARGE)
        yield page.extract_text()


def _docx(data: bytes) -> Iterator[str]:
    _check_zip(data)
    from docx import Document

    yield from _blocks(Document(io.BytesIO(data)), 0)


def _check_zip(data: bytes) -> None:
    """Raise DocumentError for an archive that unpacks to too much; a part never unpacks to more than it declares."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        parts = archive.infolist()
    if any(part.flag_bits & 1 for part in parts):
        raise DocumentError(ENCRYPTED)
    if sum(part.file_size for part in parts) > _MAX_UNPACKED:
        raise DocumentError(TOO_LARGE)
    if any(part.file_size > _SMALL and part.file_size > _MAX_RATIO * max(part.compress_size, 1) for part in parts):
        raise DocumentError(TOO_LARGE)


def _blocks(container: BlockItemContainer | DocxDocument, depth: int) -> Iterator[str]:
    from docx.table import Table

    for item in container.iter_inner_content():
        if not isinstance(item, Table):
            yield item.text
        elif depth < _MAX_DEPTH:
            for row in item.rows:
                yield "\t".join(" ".join(_blocks(cell, depth + 1)) for cell in row.cells)


def _limit() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def main() -> None:
    """Read a document from standard input and write its text.

    A line with a code, empty for success, and one that says what the process is not cut off from go before it.
    """
    mime_type = DOCX if sys.argv[1:] == ["docx"] else "application/pdf"
    _limit()
    missing = confine()
    sys.setrecursionlimit(500)
    code, text = "", ""
    try:
        text, cut = extracted(sys.stdin.buffer.read(), mime_type)
        code = "CUT" if cut else ""
    except DocumentError as error:
        code = error.code
    except MemoryError:
        code = TOO_LARGE
    except Exception:  # noqa: BLE001 - a library's error may quote the document, and nothing of it is shown
        code = UNREADABLE
    sys.stdout.buffer.write(f"{code}\n{' '.join(missing)}\n{text}".encode("utf-8", "replace"))


if __name__ == "__main__":
    main()
