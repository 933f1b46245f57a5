"""Conversion between microseconds since the epoch and protobuf Timestamps."""

from __future__ import annotations

from google.protobuf.timestamp_pb2 import Timestamp

from phylactery_chassis.util.clock import MICROSECONDS


def to_timestamp(us: int) -> Timestamp:
    """Return the Timestamp of microseconds since the epoch."""
    return Timestamp(seconds=us // MICROSECONDS, nanos=us % MICROSECONDS * 1_000)


def from_timestamp(timestamp: Timestamp) -> int:
    """Return microseconds since the epoch; finer digits are dropped."""
    return timestamp.seconds * MICROSECONDS + timestamp.nanos // 1_000
