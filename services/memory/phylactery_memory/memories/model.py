"""Memories: what one is, when the same text is the same memory, and which fact retires which.

Times are microseconds since the epoch; what still holds ends NEVER.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from phylactery_chassis.errors import Aborted, FailedPrecondition, NotFound

from phylactery_memory.retrieval.dates import day_words
from phylactery_memory.retrieval.index import label
from phylactery_memory.retrieval.words import Terms, terms

NEVER: Final = 2**63 - 1
MAX_TEXT_CHARS: Final = 10_000
THE_USER: Final = "user"


class Layer(IntEnum):
    """Where a memory is read from."""

    SEMANTIC = 1
    PROFILE = 2


class Kind(IntEnum):
    """What sort of thing a memory says."""

    FACT = 1
    PREFERENCE = 2
    EPISODE = 3


class Source(IntEnum):
    """Who said a text first."""

    USER = 1
    ASSISTANT = 2
    TOOL = 3
    WEB = 4
    SYSTEM = 5
    TEXT = 6


class Trust(IntEnum):
    """How far a text may be believed, ascending."""

    UNTRUSTED = 1
    ASSISTANT = 2
    USER = 3
    SYSTEM = 4


TRUST_OF_SOURCE: Final = {
    Source.USER: Trust.USER,
    Source.ASSISTANT: Trust.ASSISTANT,
    Source.TOOL: Trust.UNTRUSTED,
    Source.WEB: Trust.UNTRUSTED,
    Source.SYSTEM: Trust.SYSTEM,
    Source.TEXT: Trust.UNTRUSTED,
}


@dataclass(frozen=True, slots=True)
class Origin:
    """One thing a memory was made from: a message of a thread, or an output's pointer."""

    thread_id: str = ""
    message_id: str = ""
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing remembered. number is its document in the user's index, 0 until it has one."""

    memory_id: str
    text: str
    layer: Layer
    kind: Kind
    source: Source
    trust: Trust
    lineage: tuple[Origin, ...]
    importance: float
    thread_id: str
    sequence: int
    about: str
    attribute: str
    valid_us: int
    create_us: int
    update_us: int
    invalid_us: int = NEVER
    supersedes: tuple[str, ...] = ()
    superseded_by: str = ""
    revision: int = 1
    number: int = 0

    @property
    def content_hash(self) -> str:
        """Return the hash its text is known by."""
        return content_hash(self.text)

    @property
    def etag(self) -> str:
        """Return what a caller shows to change it as it last saw it."""
        return f"r{self.revision}"

    @property
    def untrusted(self) -> bool:
        """Return whether its text is data of a tool or the web, never an instruction."""
        return self.trust == Trust.UNTRUSTED

    def terms(self) -> Terms:
        """Return what it is indexed as: its words and those of the day it was said on."""
        return terms(f"{self.text}\n{day_words(self.valid_us)}")

    def record(self, length: int) -> tuple[int, ...]:
        """Return its record in the index; length is its words."""
        thread = label(self.thread_id) if self.thread_id else 0
        return (
            self.number,
            length,
            thread,
            self.sequence,
            self.valid_us,
            self.invalid_us,
            label(self.text),
            self.layer,
            self.kind,
            self.trust,
        )

    def changed(self, now_us: int, **changes: object) -> Memory:
        """Return it with changes, as its next revision."""
        return replace(self, **changes, revision=self.revision + 1, update_us=now_us)  # type: ignore[arg-type]


def content_hash(text: str) -> str:
    """Return the hash of a text as every contract writes it."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def not_found(memory_id: str) -> NotFound:
    """Return the one error for a memory nobody has and for one somebody else has."""
    return NotFound(
        "MEMORY_NOT_FOUND", f"there is no memory '{memory_id}' for this caller", metadata={"memory_id": memory_id}
    )


def check_etag(memory: Memory, etag: str) -> None:
    """Raise Aborted MEMORY_CHANGED unless the memory is as the caller last saw it."""
    if etag != memory.etag:
        raise Aborted(
            "MEMORY_CHANGED",
            f"memory '{memory.memory_id}' is at {memory.etag} now; look at it again before changing it",
            metadata={"etag": memory.etag},
        )


def repeated(standing: Memory, new: Memory) -> Memory:
    """Return what a memory becomes when its text is written again: itself, or that of a source trusted more.

    What a tool or the web said is confirmed by the person alone: the agent may only be quoting it.
    """
    if new.trust <= standing.trust or (standing.untrusted and new.trust < Trust.USER):
        return standing
    return standing.changed(
        new.update_us, source=new.source, trust=new.trust, lineage=new.lineage, layer=max(standing.layer, new.layer)
    )


def succeed(new: Memory, facts: Sequence[Memory]) -> tuple[Memory, list[Memory]]:
    """Place a fact among those of the same user, about and attribute; return it and those it retires.

    One value holds at a time: what holds when the new one begins ends there, and the new one ends where the next
    begins that is trusted no less; whatever trusted less begins in between never holds. What is trusted more is never
    retired; the new text then stands beside it without the attribute.
    """
    holding = [fact for fact in facts if fact.valid_us <= new.valid_us < fact.invalid_us]
    if any(fact.trust > new.trust for fact in holding):
        return replace(new, about="", attribute=""), []
    later = [fact for fact in facts if fact.valid_us > new.valid_us and fact.trust >= new.trust]
    following = min(later, key=lambda fact: fact.valid_us, default=None)
    if following is not None:
        new = replace(new, invalid_us=following.valid_us, superseded_by=following.memory_id)
    outdone = [
        fact
        for fact in facts
        if new.valid_us < fact.valid_us < min(new.invalid_us, fact.invalid_us) and fact.trust < new.trust
    ]
    after, retired = _retire(new, holding)
    return after, retired + _retire(new, outdone)[1]


def supersede(new: Memory, named: Memory) -> tuple[Memory, list[Memory]]:
    """Let a new memory retire the one it names; return both as they are then.

    Raise FailedPrecondition MEMORY_SUPERSEDED where that one holds no more, MEMORY_TRUSTED_MORE where it is trusted
    more than the new one.
    """
    if named.invalid_us <= new.valid_us:
        raise superseded(named)
    if named.trust > new.trust:
        raise FailedPrecondition(
            "MEMORY_TRUSTED_MORE",
            f"memory '{named.memory_id}' is trusted more than the text that would retire it; let the person say it",
            metadata={"memory_id": named.memory_id},
        )
    return _retire(new, [named])


def superseded(memory: Memory) -> FailedPrecondition:
    """Return the error for a memory that holds no more."""
    return FailedPrecondition(
        "MEMORY_SUPERSEDED",
        f"memory '{memory.memory_id}' holds no more; write what holds now as a new memory",
        metadata={"superseded_by": memory.superseded_by},
    )


def _retire(new: Memory, old: Sequence[Memory]) -> tuple[Memory, list[Memory]]:
    retired = [
        memory.changed(new.update_us, invalid_us=max(new.valid_us, memory.valid_us), superseded_by=new.memory_id)
        for memory in old
    ]
    return replace(new, supersedes=(*new.supersedes, *(memory.memory_id for memory in old))), retired
