"""Ranges of an output in characters or lines, cut from the chunks that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from phylactery_memory.outputs.chunks import Chunk
from phylactery_memory.outputs.model import OutputRecord, checked_offset, corrupt


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of an output: its start and where to continue, in characters and in lines counted from 1."""

    text: str
    offset: int
    next_offset: int
    total_chars: int
    first_line: int
    next_line: int
    next_skip_chars: int
    total_lines: int


class Passage:
    """The text of consecutive chunks of one output."""

    def __init__(self, record: OutputRecord, chunks: Sequence[Chunk]) -> None:
        """``chunks`` must be consecutive. Raise DataLoss OUTPUT_CORRUPT if one is missing in between."""
        self._record = record
        self._places = [chunk.place for chunk in chunks]
        self._texts = [chunk.text for chunk in chunks]
        ends = [place.first_char + place.chars for place in self._places]
        if [place.first_char for place in self._places[1:]] != ends[:-1]:
            raise corrupt(record.pointer)
        self._start = self._places[0].first_char if chunks else 0
        self._end = ends[-1] if chunks else 0

    def text(self, offset: int, end: int) -> str:
        """Return the characters from offset up to end. Raise DataLoss OUTPUT_CORRUPT if the chunks lack some."""
        if offset >= end:
            return ""
        if not self._start <= offset < end <= self._end:
            raise corrupt(self._record.pointer)
        return "".join(self._texts)[offset - self._start : end - self._start]

    def position(self, at: int) -> tuple[int, int]:
        """Return the line of a character, and how many characters of that line precede it."""
        if at == self._record.size_chars:
            return self._record.size_lines + 1, 0
        for place, text in zip(self._places, self._texts, strict=True):
            if place.first_char <= at <= place.first_char + place.chars:
                before = at - place.first_char
                last = text.rfind("\n", 0, before)
                start = place.line_start if last < 0 else place.first_char + last + 1
                return place.first_break + text.count("\n", 0, before) + 1, at - start
        raise corrupt(self._record.pointer)

    def range(self, offset: int, end: int) -> OutputRange:
        """Return the characters from offset up to end with their positions. Raise DataLoss OUTPUT_CORRUPT."""
        text = self.text(offset, end)
        first_line, _ = self.position(offset)
        next_line, skip = self.position(end)
        record = self._record
        return OutputRange(text, offset, end, record.size_chars, first_line, next_line, skip, record.size_lines)


def characters(record: OutputRecord, chunks: Sequence[Chunk], offset: int, limit: int) -> OutputRange:
    """Return at most ``limit`` characters from offset, cut from the ordered chunks that hold them.

    Raise OutOfRange RANGE_PAST_END, and DataLoss OUTPUT_CORRUPT if a chunk is missing.
    """
    end = min(checked_offset(record, offset) + limit, record.size_chars)
    return Passage(record, chunks).range(offset, end)


def lines(record: OutputRecord, chunks: Sequence[Chunk], offset: int, limit: int, count: int) -> OutputRange:
    """Return ``count`` lines from offset, 0 for as many as fit into limit characters; the last one whole if it fits.

    Raise OutOfRange RANGE_PAST_END, and DataLoss OUTPUT_CORRUPT if a chunk is missing.
    """
    passage = Passage(record, chunks)
    end = min(checked_offset(record, offset) + limit, record.size_chars)
    text = passage.text(offset, end)
    wanted = nth_break(text, count) if count else -1
    last = wanted if wanted >= 0 else text.rfind("\n")
    if wanted >= 0 or (end < record.size_chars and last >= 0):
        end = offset + last + 1
    return passage.range(offset, end)


def line_offset(chunk: Chunk, line: int) -> int:
    """Return the character at which a line starts; chunk holds the line feed before it."""
    return chunk.place.first_char + nth_break(chunk.text, line - 1 - chunk.place.first_break) + 1


def nth_break(text: str, count: int) -> int:
    """Return the position of the count-th line feed, -1 if there are fewer."""
    at = -1
    for _ in range(count):
        at = text.find("\n", at + 1)
        if at < 0:
            return -1
    return at
