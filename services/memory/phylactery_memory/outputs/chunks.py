"""Splitting of an output's text into chunks of whole characters, as the bytes arrive.

Each chunk knows its position in characters and lines, so that a range of either is found without reading the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from phylactery_memory.outputs.model import PREVIEW_CHARS, OutputRecord, OutputSpec, not_utf8, too_large

CHUNK_BYTES = 64 * 1024
"""A chunk's size before it is reduced to whole characters."""
LINE_FEED = b"\n"
_LINE_FEED_BYTE = LINE_FEED[0]
_CONTINUATION_MASK, _CONTINUATION = 0xC0, 0x80
_MAX_CONTINUATIONS = 3
MAX_CHUNK_BYTES = CHUNK_BYTES + _MAX_CONTINUATIONS
"""The maximum size of a chunk: the last may include a remainder too short for its own chunk."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a chunk: its first character and length, and the line feeds before it and in it.

    line_start is the character at which its first line starts, which may be in an earlier chunk.
    """

    first_char: int
    chars: int
    first_break: int
    breaks: int
    line_start: int


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an output's text."""

    place: Place
    body: bytes

    @property
    def text(self) -> str:
        """The chunk's text."""
        return self.body.decode("utf-8")


class Intake:
    """Receives one output's UTF-8 bytes and splits them into chunks."""

    def __init__(self, max_bytes: int) -> None:
        """``max_bytes`` limits the size of the output."""
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._hash = hashlib.sha256()
        self._breaks = 0
        self._line_start = 0
        self.preview_head = ""
        self.preview_tail = ""
        self.size_bytes = 0
        self.size_chars = 0

    def feed(self, data: bytes) -> list[Chunk]:
        """Add the next bytes and return the completed chunks; a character may be split between two calls.

        Raise ResourceExhausted OUTPUT_TOO_LARGE, and InvalidArgument INVALID_REQUEST if the bytes are not UTF-8.
        """
        self.size_bytes += len(data)
        if self.size_bytes > self._max_bytes:
            raise too_large(self._max_bytes)
        self._hash.update(data)
        self._pending += data
        return list(self._full_chunks())

    def finish(self) -> list[Chunk]:
        """Return the last chunk, if any, once all bytes have arrived. Raise InvalidArgument as feed does."""
        return [self._cut(bytes(self._pending), self.size_bytes - len(self._pending))] if self._pending else []

    def record(self, spec: OutputSpec) -> OutputRecord:
        """Return the output's record; valid after finish()."""
        lines = self._breaks + (self._line_start < self.size_chars)
        return OutputRecord(spec, self.size_chars, self.size_bytes, lines, self._hash.hexdigest())

    def _full_chunks(self) -> Iterator[Chunk]:
        start = 0
        with memoryview(self._pending) as pending:
            while len(pending) - start >= MAX_CHUNK_BYTES:
                end = _character_boundary(pending, start + CHUNK_BYTES)
                yield self._cut(bytes(pending[start:end]), self.size_bytes - len(pending) + start)
                start = end
        del self._pending[:start]

    def _cut(self, body: bytes, first_byte: int) -> Chunk:
        text = _text(body, first_byte)
        place = Place(self.size_chars, len(text), self._breaks, _breaks(body), self._line_start)
        self._breaks += place.breaks
        if place.breaks:
            self._line_start = self.size_chars + text.rindex("\n") + 1
        self.size_chars += len(text)
        if len(self.preview_head) < PREVIEW_CHARS:
            self.preview_head += text[: PREVIEW_CHARS - len(self.preview_head)]
        self.preview_tail = (self.preview_tail + text[-PREVIEW_CHARS:])[-PREVIEW_CHARS:]
        return Chunk(place, body)


def _text(body: bytes, first_byte: int) -> str:
    """Return the text. Raise InvalidArgument INVALID_REQUEST."""
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise not_utf8(first_byte + error.start) from None


def _breaks(body: bytes) -> int:
    """Return the number of line feeds. numpy counts them in a fifth of the time."""
    return int(np.count_nonzero(np.frombuffer(body, dtype=np.uint8) == _LINE_FEED_BYTE))


def _character_boundary(data: memoryview, at: int) -> int:
    """Return the last character boundary up to ``at``; ``at`` itself if the bytes cannot be UTF-8."""
    for back in range(_MAX_CONTINUATIONS + 1):
        if data[at - back] & _CONTINUATION_MASK != _CONTINUATION:
            return at - back
    return at
