"""Erasures: what is written down about one, and how a person can be recognised in it who is not named.

Every service that erases users keeps the same record, with counts of its own. Times are microseconds since the epoch.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from typing import Any, Generic, Self, TypeVar

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import NotFound

Counts = TypeVar("Counts")
"""A dataclass of whole numbers: how much of each kind was removed."""


@dataclass(frozen=True, slots=True)
class ErasureRecord(ABC, Generic[Counts]):
    """The record of one erasure; see the contracts. erase_us 0 is not done yet. A service says what it counts."""

    erasure_id: str
    subject_hash: str
    salt: str
    tenant: str
    requested_by_operator: bool
    request_us: int
    request_hash: str
    counts: Counts
    replayed: bool = False
    erase_us: int = 0

    @classmethod
    @abstractmethod
    def counts_of(cls, fields: dict[str, int]) -> Counts:
        """Return the service's counts. Raise TypeError where they are none."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the erasure of a line. Raise ValueError where it is none."""
        try:
            data: dict[str, Any] = json.loads(text)
            return cls(**{**data, "counts": cls.counts_of(data["counts"])})
        except (TypeError, KeyError) as error:
            raise ValueError("is no record of an erasure") from error

    def is_of(self, tenant: str, subject: str) -> bool:
        """Return whether this user was erased."""
        return hmac.compare_digest(self.subject_hash, subject_hash(self.salt, tenant, subject))

    @property
    def receipt(self) -> str:
        """Return the canonical JSON of the record: sorted keys, ASCII, whole numbers, no spaces (as RFC 8785)."""
        fields = {name: value for name, value in asdict(self).items() if name != "request_hash"}
        return _canonical(fields)

    @property
    def receipt_hash(self) -> str:
        """Return the hash of the receipt as every contract writes it."""
        return _sha256(self.receipt)

    def to_json(self) -> str:
        """Return everything about it in one line."""
        return _canonical(asdict(self))


Record = TypeVar("Record", bound=ErasureRecord[Any])


def unfinished(written: Iterable[Record], known: Container[str]) -> list[Record]:
    """Return those of the erasures written down, the oldest first, that are still to be carried out.

    known holds the ids of those that were. One that failed is not among them where the same user was erased later:
    that one took all this was for, and what the user sent since is theirs.
    """
    waiting: dict[str, Record] = {}
    for erasure in written:
        waiting[erasure.erasure_id] = erasure
        if erasure.erasure_id in known:
            waiting = {key: one for key, one in waiting.items() if one.subject_hash != erasure.subject_hash}
    return list(waiting.values())


def subject_hash(salt: str, tenant: str, subject: str) -> str:
    """Return what a user is recognised by where no name may stand."""
    return _sha256(f"{salt}\0{tenant}\0{subject}")


def request_hash(tenant: str, subject: str, request_id: str) -> str:
    """Return what the same request is found by when it comes again."""
    return _sha256(f"{tenant}\0{subject}\0{request_id}")


def whom(caller: Principal, subject: str) -> Principal:
    """Return whom to erase: the caller, or a user of their tenant whom an operator names. Raise PermissionDenied."""
    if subject in ("", caller.subject):
        caller.require(Role.CALLER)
        return caller
    caller.require(Role.OPERATOR)
    return Principal(subject, caller.tenant, frozenset({Role.CALLER}))


def may_see(caller: Principal, erasure: ErasureRecord[Any]) -> bool:
    """Return whether a record is the caller's business: they were erased, or are an operator of that tenant."""
    if erasure.tenant != caller.tenant:
        return False
    return Role.OPERATOR in caller.roles or erasure.is_of(caller.tenant, caller.subject)


def not_found(erasure_id: str) -> NotFound:
    """Return the one error for an erasure that never was and for somebody else's."""
    return NotFound(
        "ERASURE_NOT_FOUND", f"there is no erasure '{erasure_id}' for this caller", metadata={"erasure_id": erasure_id}
    )


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _sha256(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()
