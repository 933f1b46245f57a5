"""Evicted outputs: when one is kept, how its text is cut into chunks, and how a range of it is read back.

Sizes are Unicode code points of the original (seed 001: over 10,000 is evicted, rehydration under 50,000).
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_chassis.errors import DataLoss, InvalidArgument, NotFound, OutOfRange, ResourceExhausted, Violation

MAX_READ_CHARS = 10_000
"""One answer never holds more: a read's own result must not need eviction again."""
PREVIEW_CHARS = 300
CHUNK_BYTES = 64 * 1024
"""A chunk's size before it is cut back to a whole character."""
_CONTINUATION_MASK, _CONTINUATION = 0xC0, 0x80
_MAX_CONTINUATIONS = 3


@dataclass(frozen=True, slots=True)
class OutputRules:
    """The thresholds: sizes in code points, max_bytes in UTF-8 bytes."""

    evict_over_chars: int = 10_000
    rehydrate_under_chars: int = 50_000
    max_bytes: int = 64 * 1024 * 1024

    def evicts(self, size_chars: int) -> bool:
        """Says whether an output of that size leaves the context: strictly more than the threshold."""
        return size_chars > self.evict_over_chars

    def may_rehydrate(self, size_chars: int) -> bool:
        """Says whether an output of that size may return to a context whole: strictly less than the threshold."""
        return size_chars < self.rehydrate_under_chars


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """Where an output comes from."""

    thread_id: str
    run_id: str
    tool_call_id: str
    tool_name: str


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """What is known about one output. Sizes are the original's; pointer and create_us are empty where not stored."""

    spec: OutputSpec
    size_chars: int
    size_bytes: int
    sha256: str
    pointer: str = ""
    create_us: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of an output's text: whole characters, their place, and a digest that binds both to the pointer."""

    first_char: int
    chars: int
    body: bytes
    digest: bytes


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of characters of an output."""

    text: str
    offset: int
    next_offset: int
    total_chars: int


def placeholder(record: OutputRecord) -> str:
    """Answers what stands in a context instead of the output."""
    return f"[EVICTED size={record.size_chars}] See {record.pointer}"


def not_found(pointer: str) -> NotFound:
    """Answers the one error for a pointer nobody has and for a pointer somebody else has."""
    return NotFound(
        "OUTPUT_NOT_FOUND", f"there is no output '{pointer}' for this caller", metadata={"pointer": pointer}
    )


class Intake:
    """Takes one output's UTF-8 bytes as they arrive and cuts them into chunks of whole characters."""

    def __init__(self, pointer: str, max_bytes: int) -> None:
        """Starts empty; pointer is what the chunks' digests are bound to."""
        self.pointer = pointer
        self._max_bytes = max_bytes
        self._pending = bytearray()
        self._hash = hashlib.sha256()
        self._chunks: list[Chunk] = []
        self._head = ""
        self._tail = ""
        self._size_bytes = 0
        self._size_chars = 0

    @property
    def chunks(self) -> Sequence[Chunk]:
        """Gives the chunks cut so far; all of them after finish()."""
        return self._chunks

    @property
    def preview_head(self) -> str:
        """Gives the first characters, at most 300, after finish()."""
        return self._head

    @property
    def preview_tail(self) -> str:
        """Gives the last characters, at most 300, after finish()."""
        return self._tail

    def feed(self, data: bytes) -> None:
        """Takes the next bytes; a character may be cut between two calls.

        Raises ResourceExhausted OUTPUT_TOO_LARGE, and InvalidArgument INVALID_REQUEST where the bytes are not UTF-8.
        """
        self._size_bytes += len(data)
        if self._size_bytes > self._max_bytes:
            raise ResourceExhausted(
                "OUTPUT_TOO_LARGE",
                f"the output is over {self._max_bytes} bytes; store it in parts, or keep it elsewhere",
                metadata={"limit_bytes": str(self._max_bytes)},
            )
        self._hash.update(data)
        self._pending += data
        while len(self._pending) >= CHUNK_BYTES + _MAX_CONTINUATIONS:
            self._cut(_character_boundary(self._pending, CHUNK_BYTES))

    def finish(self, spec: OutputSpec) -> OutputRecord:
        """Answers what is known now that all bytes are in; pointer and create_us are still empty."""
        if self._pending:
            self._cut(len(self._pending))
        return OutputRecord(spec, self._size_chars, self._size_bytes, self._hash.hexdigest())

    def _cut(self, size: int) -> None:
        body = bytes(self._pending[:size])
        del self._pending[:size]
        try:
            text = body.decode("utf-8")
        except UnicodeDecodeError as error:
            place = self._size_bytes - len(self._pending) - len(body) + error.start
            raise InvalidArgument(
                "INVALID_REQUEST",
                f"the output is not UTF-8 at byte {place}; send text, or encode binary data as text first",
                violations=[Violation("chunk", f"not UTF-8 at byte {place} of the output")],
            ) from None
        digest = chunk_digest(self.pointer, self._size_chars, body)
        self._chunks.append(Chunk(self._size_chars, len(text), body, digest))
        self._size_chars += len(text)
        if len(self._head) < PREVIEW_CHARS:
            self._head += text[: PREVIEW_CHARS - len(self._head)]
        self._tail = (self._tail + text[-PREVIEW_CHARS:])[-PREVIEW_CHARS:]


def chunk_digest(pointer: str, first_char: int, body: bytes) -> bytes:
    """Answers SHA-256 over pointer, place and text: a chunk that moved is as damaged as one that changed."""
    return hashlib.sha256(f"{pointer}\0{first_char}\0".encode() + body).digest()


def checked_offset(record: OutputRecord, offset: int) -> int:
    """Answers the offset. Raises OutOfRange RANGE_PAST_END beyond the end; the end itself reads as empty text."""
    if offset > record.size_chars:
        raise OutOfRange(
            "RANGE_PAST_END",
            f"offset {offset} lies past the end; the output has {record.size_chars} characters",
            metadata={"total_chars": str(record.size_chars)},
        )
    return offset


def assemble(record: OutputRecord, chunks: Sequence[Chunk], offset: int, limit: int) -> OutputRange:
    """Answers the characters from offset, at most limit, out of the chunks that hold them, in order.

    Raises DataLoss OUTPUT_CORRUPT where a chunk is missing or does not match its digest: none of the text is answered.
    """
    end = min(checked_offset(record, offset) + limit, record.size_chars)
    parts: list[str] = []
    position = offset
    for chunk in chunks:
        intact = hmac.compare_digest(chunk_digest(record.pointer, chunk.first_char, chunk.body), chunk.digest)
        text = chunk.body.decode("utf-8") if intact else ""
        if not intact or not chunk.first_char <= position < chunk.first_char + len(text):
            raise _corrupt(record)
        part = text[position - chunk.first_char : end - chunk.first_char]
        parts.append(part)
        position += len(part)
    if position != end:
        raise _corrupt(record)
    return OutputRange("".join(parts), offset, end, record.size_chars)


def _corrupt(record: OutputRecord) -> DataLoss:
    return DataLoss(
        "OUTPUT_CORRUPT",
        f"the stored text of '{record.pointer}' does not match its hash, so none of it is answered; restore a backup",
        metadata={"pointer": record.pointer},
    )


def _character_boundary(data: bytearray, at: int) -> int:
    """Answers the last place up to at where a character starts; at itself where the bytes cannot be UTF-8 anyway."""
    for back in range(_MAX_CONTINUATIONS + 1):
        if data[at - back] & _CONTINUATION_MASK != _CONTINUATION:
            return at - back
    return at
