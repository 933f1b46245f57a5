"""Erasure requests and records, and how a user is recognised in one without being named.

Every service that erases users keeps the same record, with its own counts. Times are microseconds since the epoch.
"""

from __future__ import annotations

import hmac
import json
from abc import ABC, abstractmethod
from collections.abc import Container, Iterable
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Generic, Self, TypeVar

from google.protobuf.message import Message
from pydantic import StringConstraints

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import NotFound
from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier
from phylactery_chassis.util.crypto import sha256
from phylactery_chassis.util.timestamps import to_timestamp

Counts = TypeVar("Counts")
"""A dataclass of integers: how many items of each kind were removed."""


@dataclass(frozen=True, slots=True)
class ErasureRecord(ABC, Generic[Counts]):
    """The record of one erasure, as the contracts define it.

    erase_us is 0 until it is done. Each service defines its counts.
    """

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
        """Return the service's counts. Raise TypeError if the fields are invalid."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the erasure from a line of JSON. Raise ValueError if it is invalid."""
        try:
            data: dict[str, Any] = json.loads(text)
            return cls(**{**data, "counts": cls.counts_of(data["counts"])})
        except (TypeError, KeyError) as error:
            raise ValueError("is not a record of an erasure") from error

    def is_of(self, tenant: str, subject: str) -> bool:
        """Return True if this is the erasure of that user."""
        return hmac.compare_digest(self.subject_hash, subject_hash(self.salt, tenant, subject))

    @property
    def receipt(self) -> str:
        """Return the canonical JSON of the record: sorted keys, ASCII, whole numbers, no spaces (as RFC 8785)."""
        fields = {name: value for name, value in asdict(self).items() if name != "request_hash"}
        return _canonical(fields)

    @property
    def receipt_hash(self) -> str:
        """Return the hash of the receipt in the form used by every contract."""
        return sha256(self.receipt)

    def to_json(self) -> str:
        """Return the whole record as one line of JSON."""
        return _canonical(asdict(self))


Record = TypeVar("Record", bound=ErasureRecord[Any])
M = TypeVar("M", bound=Message)


class EraseUserRequest(EdgeModel):
    """The user to erase; an empty subject is the caller."""

    subject: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.:@-]{0,128}$")]
    request_id: LongIdentifier


class GetErasureRequest(EdgeModel):
    """The id of an erasure."""

    erasure_id: Identifier


def erasure_message(message: type[M], counts: type[Message], erasure: ErasureRecord[Any]) -> M:
    """Return an erasure as a contract's Erasure message, with its ErasureCounts."""
    return message(
        erasure_id=erasure.erasure_id,
        subject_hash=erasure.subject_hash,
        salt=erasure.salt,
        tenant=erasure.tenant,
        requested_by_operator=erasure.requested_by_operator,
        replayed=erasure.replayed,
        counts=counts(**asdict(erasure.counts)),
        request_time=to_timestamp(erasure.request_us),
        erase_time=to_timestamp(erasure.erase_us),
        receipt=erasure.receipt,
        receipt_hash=erasure.receipt_hash,
    )


def unfinished(written: Iterable[Record], known: Container[str]) -> list[Record]:
    """Return the logged erasures still to be carried out, the oldest first.

    ``known`` holds the ids of those already carried out. A failed one is left out if the same user was erased later:
    the later erasure removed everything the first would have, and data stored since then must be kept.
    """
    waiting: dict[str, Record] = {}
    for erasure in written:
        waiting[erasure.erasure_id] = erasure
        if erasure.erasure_id in known:
            waiting = {key: one for key, one in waiting.items() if one.subject_hash != erasure.subject_hash}
    return list(waiting.values())


def subject_hash(salt: str, tenant: str, subject: str) -> str:
    """Return the salted hash that identifies a user where no name may be stored."""
    return sha256(f"{salt}\0{tenant}\0{subject}")


def request_hash(tenant: str, subject: str, request_id: str) -> str:
    """Return the hash that identifies a repeated request."""
    return sha256(f"{tenant}\0{subject}\0{request_id}")


def whom(caller: Principal, subject: str) -> Principal:
    """Return the user to erase: the caller, or one of their tenant named by an operator. Raise PermissionDenied."""
    if subject in ("", caller.subject):
        caller.require(Role.CALLER)
        return caller
    caller.require(Role.OPERATOR)
    return Principal(subject, caller.tenant, frozenset({Role.CALLER}))


def may_see(caller: Principal, erasure: ErasureRecord[Any]) -> bool:
    """Return True if the caller may see a record: it is their own erasure, or they are an operator of that tenant."""
    if erasure.tenant != caller.tenant:
        return False
    return Role.OPERATOR in caller.roles or erasure.is_of(caller.tenant, caller.subject)


def not_found(erasure_id: str) -> NotFound:
    """Return the same error for an unknown erasure and for another user's."""
    return NotFound("ERASURE_NOT_FOUND", f"erasure '{erasure_id}' not found", metadata={"erasure_id": erasure_id})


def _canonical(fields: dict[str, Any]) -> str:
    return json.dumps(fields, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
