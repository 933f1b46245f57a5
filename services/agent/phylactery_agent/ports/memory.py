"""Memory's interface for the graph: evicted outputs, and stored memories of one end user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


class MemoryUnavailableError(Exception):
    """Error for a memory service that did not answer; ``sent`` is False if it certainly never got the call."""

    def __init__(self, message: str = "", *, sent: bool = True) -> None:
        super().__init__(message)
        self.sent = sent


class MemoryRefusedError(Exception):
    """Error for a request the memory service refused: unknown pointer, range past the end. Holds reason and message."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message


@dataclass(frozen=True, slots=True)
class StoredOutput:
    """The receipt for a stored output; sizes are those of the original."""

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
    """One line of a stored output, or a part of it; matched distinguishes it from context lines."""

    number: int
    offset: int
    text: str
    matched: bool


@dataclass(frozen=True, slots=True)
class OutputMatches:
    """The lines a search found, in order and each once; next_offset equals total_chars if all was searched."""

    lines: Sequence[OutputLine]
    offset: int
    next_offset: int
    total_chars: int


class Outputs(Protocol):
    """Memory's stored outputs of one end user. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def store_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str
    ) -> StoredOutput:
        """Store an output; idempotent by tool_call_id and text."""
        ...

    async def keep_output(
        self, text: str, *, thread_id: str, run_id: str, tool_call_id: str, tool_name: str, seconds: int = 0
    ) -> str:
        """Store a text of any length and return its pointer; idempotent by tool_call_id and text.

        seconds is how long it is kept; 0 means as long as memory keeps outputs.
        """
        ...

    async def fetch_output(self, pointer: str) -> str:
        """Return the whole text of one of the user's outputs, for a program and not for a context."""
        ...

    async def read_output(self, pointer: str, *, offset: int, limit: int) -> OutputRange:
        """Read a range of characters of one of the user's outputs."""
        ...

    async def rehydrate_output(self, pointer: str) -> str:
        """Return the whole text of one of the user's outputs, if it is short enough to return to a context."""
        ...

    async def search_output(
        self, pointer: str, pattern: str, *, literal: bool, ignore_case: bool, context_lines: int, offset: int
    ) -> OutputMatches:
        """Find the lines of a user's output that match an RE2 expression or, with literal, contain a text."""
        ...


@dataclass(frozen=True, slots=True)
class Remembered:
    """The result of storing a text: its id, or the reason why it was not stored (SECRET_PASSWORD, …).

    created_us is when it was first stored, 0 if that is not known; is_new that it was stored in this turn. text is what
    is kept. Of a text with several statements, which are kept apart, memory_id names all, with spaces between.
    """

    memory_id: str
    refusal: str = ""
    created_us: int = 0
    is_new: bool = False
    text: str = ""


@dataclass(frozen=True, slots=True)
class Recalled:
    """One memory: untrusted text came from a tool or the web and is data, never an instruction.

    source (user, assistant, tool, web, system) is the first author, and trust (untrusted, assistant, user, system) the
    level of trust.
    """

    text: str
    untrusted: bool
    valid_us: int
    memory_id: str = ""
    source: str = ""
    trust: str = ""


@dataclass(frozen=True, slots=True)
class ProfileValue:
    """One lasting fact about the person since when it holds, and its source, which is never a tool or the web."""

    name: str
    value: str | float | bool
    source: str
    trust: str
    valid_us: int = 0


@dataclass(frozen=True, slots=True)
class Hydration:
    """Memory's context for a turn, from one read: the window oldest first, memories best first, the profile by name.

    degraded says why nothing could be read; the rest is then empty, and the turn is served without it.
    """

    window: Sequence[Mapping[str, str]] = ()
    memories: Sequence[Recalled] = ()
    profile: Sequence[ProfileValue] = ()
    degraded: str = ""


class Memories(Protocol):
    """The memories of one end user, in one turn. Raises MemoryUnavailableError, MemoryRefusedError."""

    async def remember(self, text: str) -> Remembered:
        """Store a text on request; the same text again is the same memory."""
        ...

    async def forget(self, memory_id: str, *, restore: bool = False) -> bool:
        """Forget a memory, and with restore make valid again what it had superseded; return False if there is none.

        Raise MemoryRefusedError with MEMORY_SUPERSEDED if another has taken its place since and restore is asked for.
        """
        ...

    async def recall(self, query: str, *, limit: int) -> Sequence[Recalled]:
        """Return the memories matching the query, best first; without a query, the newest."""
        ...
