"""Errors of a call, one class per gRPC code, with what the service said in google.rpc.Status.

https://google.aip.dev/193 says how reason, domain and metadata travel; the reasons are each service's ErrorReason.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError
from google.rpc import error_details_pb2, status_pb2
from grpc import aio
from grpc_status import rpc_status

_REASON_PREFIX = "ERROR_REASON_"


class FieldViolation(NamedTuple):
    """One field of a request and what is wrong with it."""

    field: str
    description: str


class PhylacteryError(Exception):
    """A call that failed.

    code is the gRPC code, reason the service's word for it without the ERROR_REASON_ prefix (empty where the transport
    failed before a service could say why), domain the service, message a sentence for a person, metadata for machines.
    request_id is the one the call was made with, the client's own included: made again with it, the call counts once.
    It is empty for calls that have none.
    """

    def __init__(
        self,
        code: grpc.StatusCode,
        message: str,
        *,
        reason: str = "",
        domain: str = "",
        metadata: Mapping[str, str] | None = None,
        violations: tuple[FieldViolation, ...] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(f"{code.name}{f' ({reason})' if reason else ''}: {message}")
        self.code = code
        self.message = message
        self.reason = reason
        self.domain = domain
        self.metadata = dict(metadata or {})
        self.violations = violations
        self.request_id = request_id


class InvalidRequestError(PhylacteryError):
    """INVALID_ARGUMENT: the request itself is wrong; violations names the fields."""


class UnauthenticatedError(PhylacteryError):
    """UNAUTHENTICATED: nobody knows who calls."""


class PermissionDeniedError(PhylacteryError):
    """PERMISSION_DENIED: the caller is known and may not."""


class NotFoundError(PhylacteryError):
    """NOT_FOUND: there is no such thing for this caller."""


class AlreadyExistsError(PhylacteryError):
    """ALREADY_EXISTS: the id stands with other content."""


class FailedPreconditionError(PhylacteryError):
    """FAILED_PRECONDITION: the state does not allow it now."""


class ResourceExhaustedError(PhylacteryError):
    """RESOURCE_EXHAUSTED: a limit is reached."""


class OutOfRangeError(PhylacteryError):
    """OUT_OF_RANGE: the position lies past the end."""


class AbortedError(PhylacteryError):
    """ABORTED: somebody else was faster; start the whole operation again."""


class UnavailableError(PhylacteryError):
    """UNAVAILABLE: it did not work now. The client has tried again already."""


class DeadlineError(PhylacteryError):
    """DEADLINE_EXCEEDED: no answer in time. What was asked may have happened: ask again with the same ids."""


class CancelledByServerError(PhylacteryError):
    """CANCELLED: the other side ended the call."""


class DataLossError(PhylacteryError):
    """DATA_LOSS: what was stored is damaged."""


class UnimplementedError(PhylacteryError):
    """UNIMPLEMENTED: the service does not have this RPC; it may be older than this client."""


class ServiceFaultError(PhylacteryError):
    """INTERNAL or UNKNOWN: a fault of the service; metadata may hold an error_id for whoever runs it."""


_CLASSES: Mapping[grpc.StatusCode, type[PhylacteryError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidRequestError,
    grpc.StatusCode.UNAUTHENTICATED: UnauthenticatedError,
    grpc.StatusCode.PERMISSION_DENIED: PermissionDeniedError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    grpc.StatusCode.OUT_OF_RANGE: OutOfRangeError,
    grpc.StatusCode.ABORTED: AbortedError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DEADLINE_EXCEEDED: DeadlineError,
    grpc.StatusCode.CANCELLED: CancelledByServerError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.UNIMPLEMENTED: UnimplementedError,
}


def error_of(failure: aio.AioRpcError, request_id: str = "") -> PhylacteryError:
    """Return the typed error of a failed call; details that cannot be read are left out, never raised."""
    info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
    for detail in _status(failure).details:
        try:
            _ = detail.Unpack(info) or detail.Unpack(bad)
        except DecodeError:
            continue
    return _CLASSES.get(failure.code(), ServiceFaultError)(
        failure.code(),
        failure.details() or "",
        reason=info.reason.removeprefix(_REASON_PREFIX),
        domain=info.domain,
        metadata=info.metadata,
        violations=tuple(FieldViolation(one.field, one.description) for one in bad.field_violations),
        request_id=request_id,
    )


def _status(failure: aio.AioRpcError) -> status_pb2.Status:
    try:
        status = rpc_status.from_call(failure)
    except (ValueError, DecodeError):  # a proxy between may have changed one half of the status
        status = None
    return status or status_pb2.Status()
