"""The read policy: what each pathway reads before a turn, and which memories are worth showing beside the window."""

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
    """The most a pathway reads: messages and their characters, memories and theirs, and whether the profile."""

    messages: int = 0
    characters: int = 0
    memories: int = 0
    memory_characters: int = 0
    profile: bool = True

    def narrowed(self, messages: int, characters: int, memories: int) -> ReadPolicy:
        """Return it with the bounds of a request, 0 for none, where those are narrower."""
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
    """Return what to search for where nobody says: the newest words of the person, newest message first."""
    newest = next((message.content for message in window if message.role == "user"), "")
    return newest[:MAX_QUERY_CHARS]


def shown_elsewhere(memory: Memory, thread_id: str, sequences: Collection[int], of_profile: Collection[str]) -> bool:
    """Return whether the window shows the turn a memory was said in, or the profile the field it was taken into."""
    in_window = memory.thread_id == thread_id and memory.sequence in sequences
    return in_window or memory.memory_id in of_profile


def within(sizes: Sequence[int], most: int, characters: int) -> list[int]:
    """Return the places, at most that many, of texts whose sizes together stay within the characters.

    One that is too large is passed over, and a smaller one after it may still fit.
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
    """What a turn should know; 0 and empty leave it to the pathway."""

    thread_id: Identifier
    pathway: Annotated[int, Field(ge=1, le=4)]
    query: Annotated[str, Field(max_length=MAX_QUERY_CHARS)]
    max_messages: Annotated[int, Field(ge=0, le=500)]
    max_characters: Annotated[int, Field(ge=0, le=1_000_000)]
    max_memories: Annotated[int, Field(ge=0, le=100)]
