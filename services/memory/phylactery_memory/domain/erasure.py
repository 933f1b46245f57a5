"""Erasures of memory: the record every service keeps, with memory's counts."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_chassis.erasure.erasures import ErasureRecord


@dataclass(frozen=True, slots=True)
class ErasureCounts:
    """How much was removed."""

    threads: int = 0
    messages: int = 0
    memories: int = 0
    postings: int = 0
    profile_fields: int = 0
    outputs: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True)
class Erasure(ErasureRecord[ErasureCounts]):
    """The record of one erasure; see the contract."""

    counts: ErasureCounts = ErasureCounts()

    @classmethod
    def counts_of(cls, fields: dict[str, int]) -> ErasureCounts:
        """Answers memory's counts. Raises TypeError where they are none."""
        return ErasureCounts(**fields)


def from_json(text: str) -> Erasure:
    """Answers the erasure of a line. Raises ValueError where it is none."""
    return Erasure.from_json(text)
