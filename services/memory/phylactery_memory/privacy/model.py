"""Erasure records with memory's counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from phylactery_chassis.erasure import log as erasure_log
from phylactery_chassis.erasure.erasures import ErasureRecord
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier
from pydantic import StringConstraints


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


def from_json(text: str) -> Erasure:
    """Return the erasure from a line of JSON. Raise ValueError if it is invalid."""
    return Erasure.from_json(text)


class ErasureLog(erasure_log.ErasureLog[Erasure]):
    """The log of intents to erase."""

    def __init__(self, path: Path) -> None:
        """Open the log at ``path``, creating it if missing. Raise StartError if it is damaged."""
        super().__init__(path, Erasure, "MEMORY_ERASURE_LOG")


class EraseUserItem(EdgeModel):
    """The user to erase; an empty subject is the caller."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
    request_id: LongIdentifier


class GetErasureItem(EdgeModel):
    """The id of an erasure."""

    erasure_id: Identifier
