"""Decoding of failed calls."""

from __future__ import annotations

from dataclasses import dataclass

import grpc
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status


@dataclass
class Refusal:
    """A failed call's decoded status."""

    code: grpc.StatusCode
    reason: str
    message: str
    metadata: dict[str, str]
    fields: list[str]


def refusal_of(error: aio.AioRpcError) -> Refusal:
    """Return the decoded status of a failed call."""
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    status = rpc_status.from_call(error)
    for detail in status.details if status else ():
        detail.Unpack(info)
        detail.Unpack(bad)
    return Refusal(
        error.code(),
        info.reason.removeprefix("ERROR_REASON_"),
        error.details() or "",
        dict(info.metadata),
        [violation.field for violation in bad.field_violations],
    )
