"""Validated requests of the transcript RPCs."""

from __future__ import annotations

from typing import Annotated, Literal

from phylactery_chassis.rpc.validation import EdgeModel, Identifier, LongIdentifier, OptionalIdentifier
from phylactery_chassis.util.clock import MICROSECONDS
from pydantic import Field

MAX_SEQUENCE = 2**63 - 1
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799
"""The years 1 to 9999, the range of google.protobuf.Timestamp."""


class TimeItem(EdgeModel):
    """A google.protobuf.Timestamp."""

    seconds: Annotated[int, Field(ge=_FIRST_SECOND, le=_LAST_SECOND)]
    nanos: Annotated[int, Field(ge=0, le=999_999_999)]

    @property
    def us(self) -> int:
        """Return microseconds since the epoch; finer digits are dropped."""
        return self.seconds * MICROSECONDS + self.nanos // 1_000


class MessageItem(EdgeModel):
    """One message to append."""

    message_id: Identifier
    role: Literal["user", "assistant", "tool"]
    content: Annotated[str, Field(max_length=100_000)]
    run_id: OptionalIdentifier
    create_time: TimeItem | None


class AppendRequest(EdgeModel):
    """Messages to append to a thread."""

    thread_id: Identifier
    messages: Annotated[list[MessageItem], Field(min_length=1, max_length=100)]


class DeleteRequest(EdgeModel):
    """A thread to delete, idempotent by request id."""

    thread_id: Identifier
    request_id: LongIdentifier


class ListRequest(EdgeModel):
    """A page of a thread; 0 means the default."""

    thread_id: Identifier
    page_size: Annotated[int, Field(ge=0, le=500)]
    page_token: Annotated[str, Field(max_length=1_000)]
    max_characters: Annotated[int, Field(ge=0, le=1_000_000)]
