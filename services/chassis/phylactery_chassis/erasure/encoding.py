"""Encoding of an erasure record as the Erasure message that each service's contract defines with the same fields."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, TypeVar

from google.protobuf.message import Message

from phylactery_chassis.erasure.erasures import ErasureRecord
from phylactery_chassis.util.timestamps import to_timestamp

M = TypeVar("M", bound=Message)


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
