"""Line-based regular expression search in an output, in time linear in the text.

The text arrives in chunks; only the current line and its context are kept. If one RE2 pass over a run of lines finds no
match, its lines are not searched individually.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, cast

import re2
from phylactery_chassis.errors import InvalidArgument, Violation

from phylactery_memory.outputs.chunks import LINE_FEED, Chunk, Place
from phylactery_memory.outputs.model import MAX_READ_CHARS

MAX_LINE_CHARS = 500
MAX_CONTEXT_CHARS = 200
_LEAD_CHARS = 100
"""How many characters of a long line are returned before its match."""
_MAX_MEMORY = 8 * 1024 * 1024
_MAX_PROGRAM = 512 * 1024
"""The size limit of a compiled pattern in bytes: a larger one, such as 300 arbitrary letters, blocks every call while
it compiles."""
_MAX_WORK = 1_000_000_000
"""The limit on pattern instructions times bytes of a run of lines. RE2 takes 4 to 5 ns for each in the worst case, more
on a busy machine, and cannot be interrupted: a few seconds, well within a caller's deadline."""
_MAX_SECONDS = 1.0
"""The processor time after which a long line is not searched again for its next match. A search that ends at its first
characters may have read the whole line, and the next one would read it again."""
_HALF_CHARACTER = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""RE2's single-byte class, which may match part of a character, so that no text could be returned."""
_ONE_LINE_ONLY = re.compile(r"\\[AzbBQ]|\(\?[A-Za-z]*-")
"""Constructs that may match a single line but not a run of lines: such a pattern is applied to every line."""


@dataclass(frozen=True, slots=True)
class Query:
    """The query of a search; offset is the first character at which a match may start."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context_lines: int = 0
    offset: int = 0
    max_matches: int = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its line break, or a part of it; offset is where text starts."""

    number: int
    offset: int
    text: str
    cut: bool


@dataclass(slots=True)
class Match:
    """A matching line; offset and size_chars are the match's."""

    line: Line
    offset: int
    size_chars: int
    before: list[Line]
    after: list[Line] = field(default_factory=list)


class Scanner:
    """Scans one output's chunks in order and collects the matches of one answer."""

    def __init__(self, query: Query) -> None:
        """Compile the query; scanning starts at the first chunk. Raise InvalidArgument INVALID_REQUEST."""
        self.matches: list[Match] = []
        self.next_offset = query.offset
        self.full = False
        self._query = query
        self._line_pattern, self._run_pattern = _compile(query)
        self._work_of_byte = self._line_pattern.programsize + (
            self._run_pattern.programsize if self._run_pattern else 0
        )
        self._before: deque[Line] = deque(maxlen=query.context_lines)
        self._carry: list[bytes] = []
        self._line, self._char = 1, 0
        self._cut_open = False
        self._seconds = 0.0

    @property
    def done(self) -> bool:
        """True if the answer is full and the context after its matches is complete."""
        return self.full and not self._pending()

    @property
    def may_stop(self) -> bool:
        """True if an answer may end here: it made progress, and the context after its matches is complete."""
        return self.next_offset > self._query.offset and not self._pending()

    def begin(self, place: Place) -> None:
        """Set the position of the first chunk. A line that began before it is skipped."""
        self._line, self._char = place.first_break + 1, place.first_char
        self._cut_open = place.line_start < place.first_char

    def feed(self, chunks: Iterable[Chunk]) -> None:
        """Scan the next chunks. Raise InvalidArgument if a line is too long for a pattern of this size."""
        for chunk in chunks:
            if self.done:
                return
            body = self._after_cut(chunk.body) if self._cut_open else chunk.body
            whole, found, rest = body.rpartition(LINE_FEED)
            if found:
                run = b"".join([*self._carry, whole, found])
                self._carry.clear()
                self._scan(run)
            if rest:
                self._carry.append(rest)

    def _after_cut(self, body: bytes) -> bytes:
        """Return what follows the line that began before the first chunk."""
        dropped, found, rest = body.partition(LINE_FEED)
        self._char += len((dropped + found).decode("utf-8"))
        if found:
            self._line, self._cut_open = self._line + 1, False
        return rest

    def finish(self) -> None:
        """Scan the last line, which has no line break."""
        if self._carry and not self.done:
            self._scan(b"".join(self._carry))
        self._carry = []
        if not self.full:
            self.next_offset = self._char

    def _scan(self, run: bytes) -> None:
        if len(run) * self._work_of_byte > _MAX_WORK:
            raise _unusable(f"it is too large for a line of {len(run)} bytes; look for something simpler")
        text = run.decode("utf-8")
        if not self._pending() and (self.full or self._char + len(text) <= self._query.offset or self._no_match(run)):
            self._pass_over(text)
        else:
            self._look(text)
        if not self.full:
            self.next_offset = max(self._query.offset, self._char)

    def _no_match(self, run: bytes) -> bool:
        bodies = run.replace(b"\r\n", LINE_FEED).removesuffix(b"\r")  # the last line may have no line feed
        return self._run_pattern is not None and not self._run_pattern.search(bodies)

    def _pass_over(self, text: str) -> None:
        """Count the lines of a run without a match, and keep the last ones as context."""
        breaks = text.count("\n")
        end = len(text)
        if self._query.context_lines:
            start = end
            for _ in range(self._query.context_lines + 1):
                start = text.rfind("\n", 0, start)
                if start < 0:
                    break
            kept = text[start + 1 :]
            line = self._line + text.count("\n", 0, start + 1)
            char = self._char + start + 1
            for number, offset, body in _lines(kept, line, char):
                self._before.append(_context(number, offset, body))
        self._line, self._char = self._line + breaks, self._char + end

    def _look(self, text: str) -> None:
        """Apply the pattern to every line."""
        for number, offset, body in _lines(text, self._line, self._char):
            for match in self._pending():
                match.after.append(_context(number, offset, body))
            if not self.full:
                self._search_line(number, offset, body)
            if self.done:
                return
            self._before.append(_context(number, offset, body))
        self._line, self._char = self._line + text.count("\n"), self._char + len(text)

    def _search_line(self, number: int, offset: int, body: str) -> None:
        """Add a line's first match; of a long line all matches that lie outside the parts already returned."""
        skip = max(0, self._query.offset - offset)
        if skip > len(body):
            return
        encoded = body.encode("utf-8")
        began = time.thread_time() - self._seconds
        at_char, at_byte = skip, len(body[:skip].encode("utf-8"))
        while found := self._line_pattern.search(encoded, at_byte):
            first = at_char + len(encoded[at_byte : found.start()].decode("utf-8"))
            size = len(found.group().decode("utf-8"))
            start = max(0, first - _LEAD_CHARS) if len(body) > MAX_LINE_CHARS else 0
            part = body[start : start + MAX_LINE_CHARS]
            line = Line(number, offset + start, part, len(part) < len(body))
            self._take(Match(line, offset + first, size, list(self._before)), resume=offset + (at_char and first))
            end = start + len(part)
            if self.full or end >= len(body):
                return
            at_byte += len(body[at_char:end].encode("utf-8"))
            at_char = end
            self._seconds = time.thread_time() - began
            if self._seconds > _MAX_SECONDS:
                self.full, self.next_offset = True, offset + at_char
                return

    def _take(self, match: Match, resume: int) -> None:
        """Add a match; if the answer is full, record where a next search continues."""
        room = MAX_READ_CHARS - sum(self._cost(each) for each in self.matches)
        if len(self.matches) >= self._query.max_matches or self._cost(match) > room:
            self.full = True
            self.next_offset = max(self._query.offset, resume)
            return
        self.matches.append(match)

    def _cost(self, match: Match) -> int:
        """Return the characters a match takes, including an estimate for its missing context lines."""
        missing = (self._query.context_lines - len(match.after)) * MAX_CONTEXT_CHARS
        return len(match.line.text) + sum(len(line.text) for line in (*match.before, *match.after)) + missing

    def _pending(self) -> list[Match]:
        return [match for match in self.matches if len(match.after) < self._query.context_lines]


def _lines(text: str, line: int, char: int) -> Iterator[tuple[int, int, str]]:
    """Yield number, offset and text of each line, without its line break."""
    pieces = text.split("\n")
    if not pieces[-1]:
        pieces.pop()
    for piece in pieces:
        yield line, char, piece.removesuffix("\r")
        line, char = line + 1, char + len(piece) + 1


def _context(number: int, offset: int, body: str) -> Line:
    return Line(number, offset, body[:MAX_CONTEXT_CHARS], len(body) > MAX_CONTEXT_CHARS)


def _compile(query: Query) -> tuple[Any, Any]:
    """Return the pattern for a line, and the one for a run of lines; None if that could miss a match."""
    engine = cast("Any", re2)
    options = engine.Options()
    options.literal = query.literal
    options.never_nl = True
    options.case_sensitive = not query.ignore_case
    options.log_errors = False
    options.never_capture = True  # groups would only make the pattern larger
    options.max_mem = _MAX_PROGRAM
    pattern = query.pattern.encode("utf-8")
    if not query.literal and _HALF_CHARACTER.search(query.pattern):
        raise _unusable(r"\C matches half a character")
    try:
        engine.compile(pattern, options)
        options.max_mem = _MAX_MEMORY
        line = engine.compile(pattern, options)
        if query.literal:
            return line, line
        return line, None if _ONE_LINE_ONLY.search(query.pattern) else engine.compile(b"(?m)" + pattern, options)
    except engine.error as error:
        said = error.args[0]
        raise _unusable(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None
    finally:
        engine.purge()  # the module would otherwise cache 128 patterns with the megabytes each has grown to


def _unusable(why: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST",
        f"pattern cannot be searched for: {why}; or set literal to look for it as it is",
        violations=[Violation("pattern", "no regular expression of RE2, or one too large")],
    )
