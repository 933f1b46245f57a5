"""What memory answers about what is remembered, and about privacy. Field names are the contract's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from phylactery_client.results import Output, StoredMessage


@dataclass(frozen=True, slots=True)
class Memory:
    """Something remembered; what a tool or the web said stands in untrusted_text alone, and is data to quote."""

    memory_id: str
    text: str
    untrusted_text: str
    layer: str
    kind: str
    source: str
    trust: str
    thread_id: str
    attribute: str
    valid_at: datetime | None
    invalid_at: datetime | None
    superseded_by: str
    etag: str


@dataclass(frozen=True, slots=True)
class WriteDecision:
    """What the write policy made of a text: layer UNSPECIFIED keeps nothing; reasons stand deciding one first."""

    layer: str
    reasons: tuple[str, ...]
    explanation_en: str
    explanation_es: str
    profile_field: str
    profile_value: str


@dataclass(frozen=True, slots=True)
class WrittenMemory:
    """What became of a text: memory is None where nothing is kept."""

    decision: WriteDecision
    memory: Memory | None
    created: bool


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A memory found and what it is ranked by."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """One page of memories, the last written first."""

    memories: tuple[Memory, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ProfileField:
    """One value of a profile and where it comes from; value is a text, a number or a yes."""

    name: str
    value: str | float | bool
    source: str
    trust: str
    memory_id: str
    valid_at: datetime | None
    invalid_at: datetime | None


@dataclass(frozen=True, slots=True)
class Profile:
    """What holds about the person, by name, and what held before where asked."""

    fields: tuple[ProfileField, ...]
    etag: str
    superseded: tuple[ProfileField, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What a turn should know: messages oldest first, memories best first, the profile by name."""

    messages: tuple[StoredMessage, ...]
    memories: tuple[MemoryMatch, ...]
    profile: tuple[ProfileField, ...]
    older_messages: bool
    searched: bool


@dataclass(frozen=True, slots=True)
class OutputPage:
    """One page of stored outputs, newest first; of those in broken_pointers nothing else can be answered."""

    outputs: tuple[Output, ...]
    next_page_token: str
    broken_pointers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasureCounts:
    """How much was removed."""

    threads: int
    messages: int
    memories: int
    postings: int
    profile_fields: int
    outputs: int
    keys: int


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """What each service records of an erasure: receipt_hash is over receipt, subject_hash over salt, tenant and who."""

    erasure_id: str
    subject_hash: str
    salt: str
    tenant: str
    requested_by_operator: bool
    replayed: bool
    request_time: datetime | None
    erase_time: datetime | None
    receipt: str
    receipt_hash: str


@dataclass(frozen=True, slots=True)
class Erasure(ErasureRecord):
    """The record of an erasure at memory."""

    counts: ErasureCounts


@dataclass(frozen=True, slots=True)
class AgentErasureCounts:
    """How much was removed."""

    threads: int
    runs: int
    turns: int
    events: int
    tool_calls: int
    parcels: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class AgentErasure(ErasureRecord):
    """The record of an erasure at the agent."""

    counts: AgentErasureCounts


@dataclass(frozen=True, slots=True)
class EntryReference:
    """An entry of an audit log."""

    log: str
    index: int


@dataclass(frozen=True, slots=True)
class ErasedValues:
    """What RiskGate erased: entries that lost their values, those an open approval keeps, and the records of it."""

    erased: int
    kept_open: int
    records: tuple[EntryReference, ...]
