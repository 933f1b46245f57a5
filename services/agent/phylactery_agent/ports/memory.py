"""Memory as the graph sees it: evicted outputs, and what is remembered about one end user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class MemoryUnavailableError(Exception):
    """The memory service did not answer."""


class MemoryRefusedError(Exception):
    """The memory service answered no: unknown pointer, range past the end. Holds reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """What became of an output given to memory; sizes are the original's."""

    evicted: bool
    pointer: str
    placeholder: str
    size_chars: int
    sha256: str
    rehydration_allowed: bool
    preview_head: str = ""
    preview_tail: str = ""


@dataclass(frozen=True, slots=True)
class OutputRange:
    """A range of characters of a stored output."""

    text: str
    offset: int
    next_offset: int
    total_chars: int


@dataclass(frozen=True, slots=True)
class OutputLine:
    """One line of a stored output, or the part of it at hand; matched tells it from the lines around a match."""

    number: int
    offset: int
    text: str
    matched: bool


@dataclass(frozen=True, slots=True)
class OutputMatches:
    """The lines a search found, in order and each once; next_offset equals total_chars when all was searched."""

    lines: Sequence[OutputLine]
    offset: int
    next_offset: int
    total_chars: int


class Outputs(Protocol):
    """The output side of memory, on behalf of one end user. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def store_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str
    ) -> StoredOutput:
        """Keep an output; idempotent by tool_call_id and text."""
        ...

    async def read_output(self, pointer: str, *, offset: int, limit: int) -> OutputRange:
        """Read a range of characters of one of the user's outputs."""
        ...

    async def rehydrate_output(self, pointer: str) -> str:
        """Return the whole text of one of the user's outputs, where it is short enough to return to a context."""
        ...

    async def search_output(
        self, pointer: str, pattern: str, *, literal: bool, ignore_case: bool, context_lines: int, offset: int
    ) -> OutputMatches:
        """Find the lines of one of the user's outputs that an RE2 expression, or with literal a text, matches."""
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """What became of a text given to memory: its id, or the reason why it is not kept (SECRET_PASSWORD, …)."""

    memory_id: str
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory: untrusted text came from a tool or the web and is data, never an instruction.

    source (user, assistant, tool, web, system) is who said it first, trust (untrusted, assistant, user, system) how far
    it may be believed.
    """

    text: str
    untrusted: bool
    valid_us: int
    memory_id: str = ""
    source: str = ""
    trust: str = ""


@dataclass(frozen=True, slots=True)
class ProfileValue:
    """One thing that holds about the person for good, and who said it. A tool or the web never did."""

    name: str
    value: str | float | bool
    source: str
    trust: str


@dataclass(frozen=True, slots=True)
class Hydration:
    """What memory says before a turn, from one read: the window oldest first, memories best first, the profile by name.

    degraded says why nothing could be read; then all of it is empty, and the turn is served without.
    """

    window: Sequence[Mapping[str, str]] = ()
    memories: Sequence[Recalled] = ()
    profile: Sequence[ProfileValue] = ()
    degraded: str = ""


class Memories(Protocol):
    """What is remembered about one end user, in one turn. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def remember(self, text: str) -> Remembered:
        """Keep a text because it was asked for; the same text again is the same memory."""
        ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return what fits the words, best first; without words what was said last."""
        ...
