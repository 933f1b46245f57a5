"""Values planted in what people, tools and files say, and the search for them in everything that services leave behind.

The search knows no table and no file by name: it reads every byte of every file, every value of every table of every
SQLite database, and what is packed or encoded in either.
"""

from __future__ import annotations

import base64
import binascii
import bz2
import io
import json
import lzma
import re
import sqlite3
import unicodedata
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import re2
import sqlalchemy as sa

_SQLITE: Final = b"SQLite format 3\x00"
_PACKED: Final = re.compile(rb"\x1f\x8b\x08|PK\x03\x04|\x78[\x01\x5e\x9c\xda]|BZh[1-9]1AY|\xfd7zXZ\x00")
_BASE64: Final = re.compile(rb"[A-Za-z0-9+/_-]{24,}={0,2}")
_DEEPEST: Final = 3
_MOST_BYTES: Final = 64 * 1024 * 1024
_LONG: Final = 24
"""Characters from which a half of a secret is a find of its own: that much of it is as good as all of it."""


class Right(StrEnum):
    """Where a value may be readable."""

    SECRET = "secret"
    """Nowhere."""
    TEXT = "text"
    """Where the documentation says that it is kept readable."""


@dataclass(frozen=True, slots=True)
class Canary:
    """A planted value.

    ``kept`` are the places that may hold it readable: parts of what ``Found.place`` says. ``owner`` is whose it is:
    nothing that somebody else reads holds it.
    """

    name: str
    value: str
    right: Right
    owner: str
    kept: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, order=True)
class Found:
    """A canary that is readable somewhere: in a file, or in a column of a table of one."""

    canary: str
    place: str
    form: str

    def __str__(self) -> str:
        return f"{self.canary}: {self.place} ({self.form})"


class Search:
    """Looks for many canaries at once, in every form in which they may be stored."""

    def __init__(self, canaries: Iterable[Canary]) -> None:
        self._names: dict[bytes, tuple[str, str]] = {}
        for canary in canaries:
            for form, pattern in _forms(canary):
                self._names.setdefault(pattern.lower(), (canary.name, form))
        options = re2.Options()
        options.encoding = re2.Options.Encoding.LATIN1
        options.max_mem = 256 * 1024 * 1024
        longest_first = sorted(self._names, key=len, reverse=True)
        written = "|".join("".join(f"\\x{byte:02x}" for byte in one) for one in longest_first)
        self._pattern = re2.compile(written.encode(), options)

    def folder(self, root: Path) -> set[Found]:
        """Search every file below a folder."""
        found: set[Found] = set()
        for path in sorted(one for one in root.rglob("*") if one.is_file()):
            found |= self.file(path, str(path.relative_to(root)))
        return found

    def file(self, path: Path, place: str) -> set[Found]:
        """Search one file: its name, its bytes, and if it is a database the values of its tables."""
        data = path.read_bytes()
        found = self.data(place.encode(), f"{place} (its name)") | self.data(data, place)
        if data.startswith(_SQLITE):
            for table, column, value in _values(path):
                found |= self.data(value, f"{place} {table}.{column}")
            rows = {(one.canary) for one in found if one.place.startswith(f"{place} ")}
            # what a row holds is in the file's bytes as well; of anything else there, no row says what it is
            found = {one for one in found if one.place != place or one.canary not in rows}
        return found

    def server(self, url: str, place: str) -> set[Found]:
        """Search every table of a database of a server."""
        engine, found = sa.create_engine(url), set[Found]()
        with engine.connect() as connection:
            for table in sa.inspect(connection).get_table_names():
                for row in connection.execute(sa.text(f'SELECT * FROM "{table}"')).mappings():
                    for column, value in row.items():
                        found |= self.data(_bytes(value), f"{place} {table}.{column}")
        engine.dispose()
        return found

    def data(self, data: bytes, place: str, depth: int = 0) -> set[Found]:
        """Search bytes, and what is packed or encoded in them."""
        how = " in packed data" if depth else ""
        found = set()
        for match in self._pattern.finditer(data.lower()):
            name, form = self._names[match.group()]
            found.add(Found(name, place, form + how))
        if depth < _DEEPEST:
            for inner in _unpacked(data):
                found |= self.data(inner, place, depth + 1)
        return found


def undue(found: Iterable[Found], canaries: Iterable[Canary]) -> list[Found]:
    """Return what is readable where it must not be, in order."""
    places = {canary.name: canary.kept for canary in canaries}

    def allowed(one: Found) -> bool:
        database = f"{one.place.removesuffix('-wal')} "  # what a table may hold, the file and its log hold as well
        return any(place in one.place or place.startswith(database) for place in places[one.canary])

    return sorted(one for one in found if not allowed(one))


def _forms(canary: Canary) -> Iterator[tuple[str, bytes]]:
    """Yield how a value may be stored, each as a name and its bytes."""
    pieces = {"in clear": canary.value}
    if not canary.value.isascii():
        folded = "".join(one for one in unicodedata.normalize("NFKD", canary.value) if not unicodedata.combining(one))
        pieces |= {"folded": folded, "in capitals": canary.value.upper(), "in small letters": canary.value.lower()}
    if canary.right is Right.SECRET and len(canary.value) >= _LONG:
        half = len(canary.value) // 2
        pieces |= {"its first half": canary.value[:half], "its second half": canary.value[half:]}
    for title, text in pieces.items():
        plain = text.encode()
        yield title, plain
        yield f"{title}, as JSON", json.dumps(text)[1:-1].encode()
        yield f"{title}, in a URL", quote(text, safe="").encode()
        yield f"{title}, UTF-16", text.encode("utf-16-le")
        yield f"{title}, UTF-16", text.encode("utf-16-be")
        yield f"{title}, hex", plain.hex().encode()
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            for shift in range(3):  # at every place in a longer text; its first and last characters hold other bits
                begin, end = -(-shift * 4 // 3), (shift + len(plain)) * 4 // 3
                yield f"{title}, base64", encode(bytes(shift) + plain + b"\x00" * 3)[begin:end]


def _values(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield each table's values by table and column, those of the write-ahead log included."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        database.text_factory = bytes
        names = [name.decode() for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for table in names:
            rows = database.execute(f'SELECT * FROM "{table}"')
            columns = [one[0] for one in rows.description]
            for row in rows:
                for column, value in zip(columns, row, strict=True):
                    yield table, column, _bytes(value)


def _bytes(value: Any) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Yield what is compressed anywhere in bytes, also behind base64."""
    view = memoryview(data)
    for match in _PACKED.finditer(data):
        yield from _inflated(match.group()[:2], view[match.start() :])
    for match in _BASE64.finditer(data):
        if match.group()[:2] in (b"H4", b"eJ", b"eA", b"eF", b"eN", b"UE", b"Qm", b"/T"):
            try:
                decoded = base64.b64decode(match.group().replace(b"-", b"+").replace(b"_", b"/") + b"==")
            except binascii.Error:
                continue
            yield from _inflated(decoded[:2], memoryview(decoded))


def _inflated(begin: bytes, data: memoryview) -> Iterator[bytes]:
    """Yield the content of compressed data that may be followed by something else; nothing if it is none."""
    try:
        if begin == b"PK":
            with zipfile.ZipFile(io.BytesIO(data)) as archive:
                yield from (archive.read(name) for name in archive.namelist())
        elif begin == b"BZ":
            yield bz2.BZ2Decompressor().decompress(data, _MOST_BYTES)
        elif begin == b"\xfd7":
            yield lzma.LZMADecompressor().decompress(data, _MOST_BYTES)
        else:
            yield zlib.decompressobj(47).decompress(data, _MOST_BYTES)
    except (OSError, EOFError, ValueError, RuntimeError, zlib.error, lzma.LZMAError, zipfile.BadZipFile):
        return
