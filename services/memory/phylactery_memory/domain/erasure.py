"""Erasures: what is written down about one, and how a person can be recognised in it who is not named.

Times are microseconds since the epoch.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import asdict, dataclass
from typing import Any

from phylactery_chassis.errors import NotFound


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
class Erasure:
    """The record of one erasure; see the contract. erase_us 0 is not done yet."""

    erasure_id: str
    subject_hash: str
    salt: str
    tenant: str
    requested_by_operator: bool
    request_us: int
    request_hash: str
    counts: ErasureCounts = ErasureCounts()
    replayed: bool = False
    erase_us: int = 0

    def is_of(self, tenant: str, subject: str) -> bool:
        """Says whether this user was erased."""
        return hmac.compare_digest(self.subject_hash, subject_hash(self.salt, tenant, subject))

    @property
    def receipt(self) -> str:
        """Answers the canonical JSON of the record: sorted keys, ASCII, whole numbers, no spaces (as RFC 8785)."""
        fields = {name: value for name, value in asdict(self).items() if name != "request_hash"}
        return _canonical(fields)

    @property
    def receipt_hash(self) -> str:
        """Answers the hash of the receipt as every contract writes it."""
        return _sha256(self.receipt)

    def to_json(self) -> str:
        """Answers everything about it in one line."""
        return _canonical(asdict(self))


def from_json(text: str) -> Erasure:
    """Answers the erasure of a line. Raises ValueError where it is none."""
    try:
        data: dict[str, Any] = json.loads(text)
        return Erasure(**{**data, "counts": ErasureCounts(**data["counts"])})
    except (TypeError, KeyError) as error:
        raise ValueError("is no record of an erasure") from error


def subject_hash(salt: str, tenant: str, subject: str) -> str:
    """Answers what a user is recognised by where no name may stand."""
    return _sha256(f"{salt}\0{tenant}\0{subject}")


def request_hash(tenant: str, subject: str, request_id: str) -> str:
    """Answers what the same request is found by when it comes again."""
    return _sha256(f"{tenant}\0{subject}\0{request_id}")


def not_found(erasure_id: str) -> NotFound:
    """Answers the one error for an erasure that never was and for somebody else's."""
    return NotFound(
        "ERASURE_NOT_FOUND", f"there is no erasure '{erasure_id}' for this caller", metadata={"erasure_id": erasure_id}
    )


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
