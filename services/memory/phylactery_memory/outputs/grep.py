"""Searching an output as grep does: a regular expression against one line at a time, in time linear in the text.

The text comes in chunks; nothing but the line at hand and its context is kept. Where a run of lines holds no match at
all, which one pass of RE2 over them says, its lines are not looked at one by one.
"""

from __future__ import annotations

import re
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
"""How much of a long line is answered before its match."""
_MAX_MEMORY = 8 * 1024 * 1024
_MAX_PROGRAM = 512 * 1024
"""Bytes of a compiled pattern: a larger one, such as 300 times any letter, holds up every call while it is compiled."""
_MAX_WORK = 2_000_000_000
"""Instructions of the patterns times bytes of a run of lines. RE2 takes 1.2 ns for each where it is slowest, 4 ns on a
busy machine, and nothing ends it in between: a few seconds, well within a caller's deadline."""
_HALF_CHARACTER = re.compile(r"(?<!\\)(?:\\\\)*\\C")
"""RE2's single byte, which may be a part of a character: no text can be answered for it."""
_ONE_LINE_ONLY = re.compile(r"\\[AzbBQ]|\(\?[A-Za-z]*-")
"""What may match in a line alone and not in a run of lines: such a pattern is held against every line."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to look for; offset is the first character a match may start at."""

    pattern: str
    literal: bool = False
    ignore_case: bool = False
    context_lines: int = 0
    offset: int = 0
    max_matches: int = 50


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its break, or a part of it; offset is where text starts."""

    number: int
    offset: int
    text: str
    cut: bool


@dataclass(slots=True)
class Match:
    """A line that matched; offset and size_chars are the match's."""

    line: Line
    offset: int
    size_chars: int
    before: list[Line]
    after: list[Line] = field(default_factory=list)


class Scanner:
    """Goes through one output's chunks, in order, and gathers the matches of one answer."""

    def __init__(self, query: Query) -> None:
        """Start before the first chunk fed. Raise InvalidArgument INVALID_REQUEST where the pattern is none."""
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

    @property
    def done(self) -> bool:
        """Return whether the answer is full and no line is missing after its matches."""
        return self.full and not self._pending()

    @property
    def may_stop(self) -> bool:
        """Return whether an answer may end here: it got on, and no line is missing after its matches."""
        return self.next_offset > self._query.offset and not self._pending()

    def begin(self, place: Place) -> None:
        """Tell where the first chunk lies. Of a line that began before it nothing is looked at."""
        self._line, self._char = place.first_break + 1, place.first_char
        self._cut_open = place.line_start < place.first_char

    def feed(self, chunks: Iterable[Chunk]) -> None:
        """Look at the next chunks. Raise InvalidArgument where a line is too long for so large a pattern."""
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
        """Look at the last line, which nothing ends."""
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
        bodies = run.replace(b"\r\n", LINE_FEED).removesuffix(b"\r")  # the last line of a text may end without a feed
        return self._run_pattern is not None and not self._run_pattern.search(bodies)

    def _pass_over(self, text: str) -> None:
        """Count lines nobody looks at, and keep the last of them as context."""
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
        """Hold the pattern against every line."""
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
        """Take a line's first match; of a long line all those that no part answered shows."""
        skip = max(0, self._query.offset - offset)
        if skip > len(body):
            return
        encoded = body.encode("utf-8")
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

    def _take(self, match: Match, resume: int) -> None:
        """Add a match, unless the answer is full: then a search goes on with it."""
        room = MAX_READ_CHARS - sum(self._cost(each) for each in self.matches)
        if len(self.matches) >= self._query.max_matches or self._cost(match) > room:
            self.full = True
            self.next_offset = max(self._query.offset, resume)
            return
        self.matches.append(match)

    def _cost(self, match: Match) -> int:
        """Return the characters a match takes, with those its missing lines may take."""
        missing = (self._query.context_lines - len(match.after)) * MAX_CONTEXT_CHARS
        return len(match.line.text) + sum(len(line.text) for line in (*match.before, *match.after)) + missing

    def _pending(self) -> list[Match]:
        return [match for match in self.matches if len(match.after) < self._query.context_lines]


def _lines(text: str, line: int, char: int) -> Iterator[tuple[int, int, str]]:
    """Yield number, offset and text of each line, without its break."""
    pieces = text.split("\n")
    if not pieces[-1]:
        pieces.pop()
    for piece in pieces:
        yield line, char, piece.removesuffix("\r")
        line, char = line + 1, char + len(piece) + 1


def _context(number: int, offset: int, body: str) -> Line:
    return Line(number, offset, body[:MAX_CONTEXT_CHARS], len(body) > MAX_CONTEXT_CHARS)


def _compile(query: Query) -> tuple[Any, Any]:
    """Return the pattern for one line, and the one for a run of lines, None where that one could miss a line's."""
    engine = cast("Any", re2)
    options = engine.Options()
    options.literal = query.literal
    options.never_nl = True
    options.case_sensitive = not query.ignore_case
    options.log_errors = False
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
        engine.purge()  # the module keeps 128 patterns otherwise, with the megabytes each has grown to


def _unusable(why: str) -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST",
        f"pattern cannot be searched for: {why}; or set literal to look for it as it is",
        violations=[Violation("pattern", "no regular expression of RE2, or one too large")],
    )
