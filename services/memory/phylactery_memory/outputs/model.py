"""Evicted outputs: thresholds, retention and metadata.

Sizes are Unicode code points of the original (over 10,000 is evicted, rehydration under 50,000).
"""

from __future__ import annotations

from dataclasses import dataclass

from phylactery_chassis.errors import (
    DataLoss,
    FailedPrecondition,
    InvalidArgument,
    NotFound,
    OutOfRange,
    ResourceExhausted,
    Violation,
)
from phylactery_chassis.util.clock import MICROSECONDS

MAX_READ_CHARS = 10_000
"""The most characters of one answer, so that a read's own result needs no eviction."""
PREVIEW_CHARS = 300
NEVER = 2**63 - 1
"""The expiry time of an output that does not expire."""
DAY_US = 86_400 * MICROSECONDS


@dataclass(frozen=True, slots=True)
class OutputRules:
    """The limits: thresholds in code points, the others in UTF-8 bytes of originals; ttl_us 0 keeps forever."""

    evict_over_chars: int = 10_000
    rehydrate_under_chars: int = 50_000
    max_bytes: int = 64 * 1024 * 1024
    quota_bytes: int = 1024 * 1024 * 1024
    ttl_us: int = 30 * DAY_US

    def evicts(self, size_chars: int) -> bool:
        """Return True if an output of that size is evicted from the context: strictly more than the threshold."""
        return size_chars > self.evict_over_chars

    def may_rehydrate(self, size_chars: int) -> bool:
        """Return True if an output of that size may return to a context whole: strictly less than the threshold."""
        return size_chars < self.rehydrate_under_chars

    def expire_us(self, create_us: int, ttl_us: int) -> int:
        """Return an output's expiry time; ttl_us 0 means the default."""
        ttl_us = ttl_us or self.ttl_us
        return create_us + ttl_us if ttl_us else NEVER


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """The origin of an output."""

    thread_id: str
    run_id: str
    tool_call_id: str
    tool_name: str


@dataclass(frozen=True, slots=True)
class Keeping:
    """Storage options of an output; ttl_us 0 means the default."""

    ttl_us: int = 0
    do_not_store: bool = False
    keep: bool = False
    """Store the text regardless of its size."""


@dataclass(frozen=True, slots=True)
class OutputRecord:
    """The metadata of an output. Sizes are the original's.

    pointer is empty if nothing is kept; stored is True if the text is.
    """

    spec: OutputSpec
    size_chars: int
    size_bytes: int
    size_lines: int
    sha256: str
    pointer: str = ""
    create_us: int = 0
    expire_us: int = NEVER
    stored: bool = False


def placeholder(record: OutputRecord) -> str:
    """Return the text that replaces the output in a context."""
    return f"[EVICTED size={record.size_chars}] See {record.pointer}"


def not_found(pointer: str) -> NotFound:
    """Return the same error for an unknown pointer and for another user's."""
    return NotFound("OUTPUT_NOT_FOUND", f"output '{pointer}' not found", metadata={"pointer": pointer})


def not_stored(record: OutputRecord) -> FailedPrecondition:
    """Return the error for reading an output whose text was not stored."""
    return FailedPrecondition(
        "OUTPUT_NOT_STORED",
        f"output '{record.pointer}' was sent with do_not_store, so its text is nowhere; run the tool again to see it",
        metadata={"pointer": record.pointer},
    )


def corrupt(pointer: str) -> DataLoss:
    """Return the error for an output that does not match its seal."""
    return DataLoss(
        "OUTPUT_CORRUPT",
        f"the stored data of '{pointer}' fails authentication and is not returned; restore a backup",
        metadata={"pointer": pointer},
    )


def too_large(max_bytes: int) -> ResourceExhausted:
    """Return the error for an output over the size limit."""
    return ResourceExhausted(
        "OUTPUT_TOO_LARGE",
        f"the output is over {max_bytes} bytes; store it in parts, or keep it elsewhere",
        metadata={"limit_bytes": str(max_bytes)},
    )


def over_quota(quota_bytes: int) -> ResourceExhausted:
    """Return the error for an output over its user's quota."""
    return ResourceExhausted(
        "OUTPUT_QUOTA",
        f"the outputs of this user would take more than {quota_bytes} bytes; delete some, or let some expire",
        metadata={"quota_bytes": str(quota_bytes)},
    )


def not_utf8(place: int) -> InvalidArgument:
    """Return the error for bytes that are not UTF-8."""
    return InvalidArgument(
        "INVALID_REQUEST",
        f"the output is not UTF-8 at byte {place}; send text, or encode binary data as text first",
        violations=[Violation("chunk", f"not UTF-8 at byte {place} of the output")],
    )


def check_rehydration(rules: OutputRules, record: OutputRecord) -> None:
    """Raise FailedPrecondition OUTPUT_NOT_REHYDRATABLE if an output is too large to return to a context whole."""
    if not rules.may_rehydrate(record.size_chars):
        raise FailedPrecondition(
            "OUTPUT_NOT_REHYDRATABLE",
            f"the output has {record.size_chars} characters and may return to a context whole only under "
            f"{rules.rehydrate_under_chars}; read it in parts or search it",
            metadata={"size_chars": str(record.size_chars)},
        )


def checked_offset(record: OutputRecord, offset: int) -> int:
    """Return the offset. Raise OutOfRange RANGE_PAST_END beyond the end; the end itself reads as empty text."""
    if offset > record.size_chars:
        raise OutOfRange(
            "RANGE_PAST_END",
            f"offset {offset} is past the end; the output has {record.size_chars} characters",
            metadata={"total_chars": str(record.size_chars)},
        )
    return offset


def checked_line(record: OutputRecord, line: int) -> int:
    """Return the line. Raise OutOfRange RANGE_PAST_END beyond one past the last, which reads as empty text."""
    if line > record.size_lines + 1:
        raise OutOfRange(
            "RANGE_PAST_END",
            f"line {line} is past the end; the output has {record.size_lines} lines",
            metadata={"total_lines": str(record.size_lines)},
        )
    return line
