"""What the agent and RiskGate answer about an erasure; memory's is in memory_results. Names are the contract's."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_client.memory_results import ErasureRecord


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
