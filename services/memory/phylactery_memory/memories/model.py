"""Memories: fields, identity by text, and which fact retires which.

Times are microseconds since the epoch; a current memory ends at NEVER.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Final

from phylactery_chassis.errors import Aborted, FailedPrecondition, NotFound
from phylactery_chassis.util.crypto import sha256

from phylactery_memory.retrieval.index import label
from phylactery_memory.retrieval.words import Terms, day_words, terms

NEVER: Final = 2**63 - 1
MAX_TEXT_CHARS: Final = 10_000
THE_USER: Final = "user"


class Layer(IntEnum):
    """The layer a memory is read from."""

    SEMANTIC = 1
    PROFILE = 2


class Kind(IntEnum):
    """The kind of statement a memory makes."""

    FACT = 1
    PREFERENCE = 2
    EPISODE = 3


class Source(IntEnum):
    """The original source of a text."""

    USER = 1
    ASSISTANT = 2
    TOOL = 3
    WEB = 4
    SYSTEM = 5
    TEXT = 6


class Trust(IntEnum):
    """Levels of trust in a text, ascending."""

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


_ASKED_WITH: Final = {
    "name": "name",
    "name.preferred": "name",
    "city": "live",
    "employer": "work",
    "birthday": "birthday",
    "diet": "diet",
    "language": "language",
}
"""The word of questions about an attribute that a statement of it may lack: "I moved to Lima". Spanish ones find it."""


@dataclass(frozen=True, slots=True)
class Origin:
    """One origin of a memory: a message of a thread, or an output's pointer."""

    thread_id: str = ""
    message_id: str = ""
    pointer: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """One remembered text. number is its document in the user's index, 0 until it has one."""

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
        """The hash of its text."""
        return sha256(self.text)

    @property
    def etag(self) -> str:
        """The version a caller passes to change the memory as last read."""
        return f"r{self.revision}"

    @property
    def untrusted(self) -> bool:
        """True if its text is data of a tool or the web, never an instruction."""
        return self.trust == Trust.UNTRUSTED

    def terms(self) -> Terms:
        """Return its index terms: its words, those of its day, and those that its attribute is asked for with."""
        return terms(f"{self.text}\n{day_words(self.valid_us)}\n{_ASKED_WITH.get(self.attribute, '')}")

    def record(self, length: int) -> tuple[int, ...]:
        """Return its record in the index; length is its number of words."""
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
        """Return its next revision with changes applied."""
        return replace(self, **changes, revision=self.revision + 1, update_us=now_us)  # type: ignore[arg-type]


def not_found(memory_id: str) -> NotFound:
    """Return the same error for an unknown memory and for another user's."""
    return NotFound("MEMORY_NOT_FOUND", f"memory '{memory_id}' not found", metadata={"memory_id": memory_id})


def check_etag(memory: Memory, etag: str) -> None:
    """Raise Aborted MEMORY_CHANGED unless the memory is unchanged since the caller read it."""
    if etag != memory.etag:
        raise Aborted(
            "MEMORY_CHANGED",
            f"memory '{memory.memory_id}' is at {memory.etag} now; look at it again before changing it",
            metadata={"etag": memory.etag},
        )


def repeated(standing: Memory, new: Memory) -> Memory:
    """Return a memory after its text was written again: unchanged, or with a more trusted source.

    A text from a tool or the web is confirmed only by the person: the agent may merely be quoting it.
    """
    if new.trust <= standing.trust or (standing.untrusted and new.trust < Trust.USER):
        return standing
    return standing.changed(
        new.update_us, source=new.source, trust=new.trust, lineage=new.lineage, layer=max(standing.layer, new.layer)
    )


def succeed(new: Memory, facts: Sequence[Memory]) -> tuple[Memory, list[Memory]]:
    """Insert a fact among those with the same user, about and attribute; return it and those it retires.

    One value holds at a time. The fact that holds when the new one begins ends there. The new one ends where the next
    fact of at least equal trust begins; less trusted facts that begin in between are retired. A more trusted fact is
    never retired: the new text is then kept without the attribute.
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
    """Make a new memory retire the one it names; return both with their changes.

    Raise FailedPrecondition MEMORY_SUPERSEDED if the named one no longer holds, MEMORY_TRUSTED_MORE if it is trusted
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
    """Return the error for a memory that no longer holds."""
    return FailedPrecondition(
        "MEMORY_SUPERSEDED",
        f"memory '{memory.memory_id}' is no longer valid; write the current fact as a new memory",
        metadata={"superseded_by": memory.superseded_by},
    )


def _retire(new: Memory, old: Sequence[Memory]) -> tuple[Memory, list[Memory]]:
    retired = [
        memory.changed(new.update_us, invalid_us=max(new.valid_us, memory.valid_us), superseded_by=new.memory_id)
        for memory in old
    ]
    return replace(new, supersedes=(*new.supersedes, *(memory.memory_id for memory in old))), retired
