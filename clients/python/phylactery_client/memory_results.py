"""Results of memory about memories and privacy. Field names are the contract's."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from phylactery_client.results import Output, StoredMessage


@dataclass(frozen=True, slots=True)
class Memory:
    """A memory. Text from a tool or the web is only in untrusted_text, and is data to quote."""

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
    """The write policy's decision on a text: layer UNSPECIFIED keeps nothing; the deciding reason is first."""

    layer: str
    reasons: tuple[str, ...]
    explanation_en: str
    explanation_es: str
    profile_field: str
    profile_value: str


@dataclass(frozen=True, slots=True)
class WrittenMemory:
    """The outcome of a write: memory is None if nothing was kept."""

    decision: WriteDecision
    memory: Memory | None
    created: bool


@dataclass(frozen=True, slots=True)
class MemoryMatch:
    """A found memory and its score."""

    memory: Memory
    score: float


@dataclass(frozen=True, slots=True)
class MemoryPage:
    """A page of memories, most recently written first."""

    memories: tuple[Memory, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class ProfileField:
    """A profile value and its source; value is a text, a number or a boolean."""

    name: str
    value: str | float | bool
    source: str
    trust: str
    memory_id: str
    valid_at: datetime | None
    invalid_at: datetime | None


@dataclass(frozen=True, slots=True)
class Profile:
    """A person's current values by name, and former values if requested."""

    fields: tuple[ProfileField, ...]
    etag: str
    superseded: tuple[ProfileField, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a turn: messages oldest first, memories best first, the profile by name."""

    messages: tuple[StoredMessage, ...]
    memories: tuple[MemoryMatch, ...]
    profile: tuple[ProfileField, ...]
    older_messages: bool
    searched: bool


@dataclass(frozen=True, slots=True)
class OutputPage:
    """A page of stored outputs, newest first; for broken_pointers no other data is available."""

    outputs: tuple[Output, ...]
    next_page_token: str
    broken_pointers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ErasureCounts:
    """The number of removed items of each kind."""

    threads: int
    messages: int
    memories: int
    postings: int
    profile_fields: int
    outputs: int
    keys: int


@dataclass(frozen=True, slots=True)
class ErasureRecord:
    """A service's record of an erasure. receipt_hash is over receipt; subject_hash over salt, tenant and subject."""

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
    """The number of removed items of each kind."""

    threads: int
    runs: int
    turns: int
    events: int
    tool_calls: int
    parcels: int
    checkpoints: int
    files: int


@dataclass(frozen=True, slots=True)
class AgentErasure(ErasureRecord):
    """The record of an erasure at the agent."""

    counts: AgentErasureCounts


@dataclass(frozen=True, slots=True)
class EntryReference:
    """A reference to an audit log entry."""

    log: str
    index: int


@dataclass(frozen=True, slots=True)
class ErasedValues:
    """RiskGate's erasure: entries that lost their values, those kept by an open approval, and its audit records."""

    erased: int
    kept_open: int
    records: tuple[EntryReference, ...]
