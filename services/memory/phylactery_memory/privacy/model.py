"""Erasure records with memory's counts."""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_chassis.erasure.erasures import ErasureRecord


@dataclass(frozen=True, slots=True)
class ErasureCounts:
    """The number of removed items of each kind."""

    threads: int = 0
    messages: int = 0
    memories: int = 0
    postings: int = 0
    profile_fields: int = 0
    outputs: int = 0
    keys: int = 0


@dataclass(frozen=True, slots=True)
class Erasure(ErasureRecord[ErasureCounts]):
    """The record of one erasure, as the contract defines it."""

    counts: ErasureCounts = ErasureCounts()

    @classmethod
    def counts_of(cls, fields: dict[str, int]) -> ErasureCounts:
        """Return memory's counts. Raise TypeError if the fields are invalid."""
        return ErasureCounts(**fields)
