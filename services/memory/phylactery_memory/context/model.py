"""The read policy: what each pathway reads before a turn, and which memories add to the window."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Annotated, Final

from phylactery_chassis.rpc.validation import EdgeModel, Identifier
from pydantic import Field

from phylactery_memory.memories.model import Memory
from phylactery_memory.transcript.model import Message

MAX_QUERY_CHARS: Final = 2_000


class Pathway(IntEnum):
    """How a message is served; the numbers are those of the contract."""

    TEXT_FAST_PATH = 1
    TOOL_INTENT = 2
    RICH_INPUT = 3
    STANDBY = 4


@dataclass(frozen=True, slots=True)
class ReadPolicy:
    """Limits of a pathway: messages and their characters, memories and theirs, and whether it reads the profile."""

    messages: int = 0
    characters: int = 0
    memories: int = 0
    memory_characters: int = 0
    profile: bool = True

    def narrowed(self, messages: int, characters: int, memories: int) -> ReadPolicy:
        """Return the policy with a request's limits, 0 for none, where they are lower."""
        return replace(
            self,
            messages=_narrower(self.messages, messages),
            characters=_narrower(self.characters, characters),
            memories=_narrower(self.memories, memories),
        )


READ_POLICY: Final = {
    Pathway.TEXT_FAST_PATH: ReadPolicy(12, 6_000),
    Pathway.TOOL_INTENT: ReadPolicy(40, 24_000, 8, 6_000),
    Pathway.RICH_INPUT: ReadPolicy(6, 3_000),
    Pathway.STANDBY: ReadPolicy(profile=False),
}


def query_of(window: Sequence[Message]) -> str:
    """Return the default query: the person's latest words, newest message first."""
    newest = next((message.content for message in window if message.role == "user"), "")
    return newest[:MAX_QUERY_CHARS]


def shown_elsewhere(memory: Memory, thread_id: str, sequences: Collection[int], of_profile: Collection[str]) -> bool:
    """Return True if the window shows the turn of a memory, or the profile the field taken from it."""
    in_window = memory.thread_id == thread_id and memory.sequence in sequences
    return in_window or memory.memory_id in of_profile


def within(sizes: Sequence[int], most: int, characters: int) -> list[int]:
    """Return the indices, at most ``most``, of texts whose total size stays within ``characters``.

    A text that is too large is skipped, and a smaller one after it may still fit.
    """
    places: list[int] = []
    left = characters
    for place, size in enumerate(sizes):
        if size <= left and len(places) < most:
            places.append(place)
            left -= size
    return places


def _narrower(own: int, asked: int) -> int:
    return min(own, asked) if asked else own


class BuildContextItem(EdgeModel):
    """A context request; 0 and empty leave a field to the pathway."""

    thread_id: Identifier
    pathway: Annotated[int, Field(ge=1, le=4)]
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
    max_messages: Annotated[int, Field(ge=0, le=500)]
    max_characters: Annotated[int, Field(ge=0, le=1_000_000)]
    max_memories: Annotated[int, Field(ge=0, le=100)]
