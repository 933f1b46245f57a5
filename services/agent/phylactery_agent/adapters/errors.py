"""Translation of failed calls into port errors: the other service is unavailable, or it refused."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2
from grpc import aio
from grpc_status import rpc_status

_PREFIX = "ERROR_REASON_"
_FULL = "STORE_FULL"
"""Not a statement about the request: it is accepted once there is room, so pending deliveries keep waiting."""

_REFUSALS = frozenset(
    {
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.FAILED_PRECONDITION,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.ALREADY_EXISTS,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.DATA_LOSS,
    }
)


class Refusal(NamedTuple):
    """A refusal in the other service's own words."""

    reason: str
    message: str
    metadata: Mapping[str, str]


def refusal_of(error: aio.AioRpcError) -> Refusal | None:
    """Return the refusal in a failed call, or None if the call should be retried.

    None covers every other code, a full disk, and a refusal without ErrorInfo, which comes from the transport and not
    from the service.
    """
    if error.code() not in _REFUSALS:
        return None
    info = _error_info(error)
    if info is None or info.reason.removeprefix(_PREFIX) == _FULL:
        return None
    return Refusal(info.reason.removeprefix(_PREFIX), error.details() or "", dict(info.metadata))


def _error_info(error: aio.AioRpcError) -> error_details_pb2.ErrorInfo | None:
    try:
        status = rpc_status.from_call(error)
    except (ValueError, DecodeError):
        return None
    for detail in status.details if status is not None else ():
        info = error_details_pb2.ErrorInfo()
        if detail.Unpack(info):
            return info
    return None
