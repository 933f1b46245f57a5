"""Errors on the wire: google.rpc.Status with ErrorInfo, and BadRequest for invalid fields."""

from __future__ import annotations

import grpc
from google.protobuf import any_pb2
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc_status import rpc_status

from phylactery_chassis.errors import DomainError

REASON_PREFIX = "ERROR_REASON_"
_MAX_METADATA_VALUE = 200
MAX_MESSAGE = 1_000


class _Internal(DomainError):
    code = "INTERNAL"


def to_status(error: DomainError, service: str) -> grpc.Status:
    """Return the status for a domain error of a service; its reason is in the service's error domain."""
    info = error_details_pb2.ErrorInfo(
        reason=REASON_PREFIX + error.reason,
        domain=f"{service}.phylactery",
        metadata={key: value[:_MAX_METADATA_VALUE] for key, value in error.metadata.items()},
    )
    details = [_pack(info)]
    if error.violations:
        bad = error_details_pb2.BadRequest()
        for violation in error.violations:
            bad.field_violations.add(field=violation.field, description=violation.description)
        details.append(_pack(bad))
    status = status_pb2.Status(
        code=code_pb2.Code.Value(error.code), message=error.message[:MAX_MESSAGE], details=details
    )
    answer: grpc.Status = rpc_status.to_status(status)
    return answer


def internal_status(error_id: str, service: str) -> grpc.Status:
    """Return INTERNAL with an id to search the log for, and nothing of the exception."""
    return to_status(
        _Internal(
            "INTERNAL",
            f"internal error; quote the id {error_id} to the operator of the service",
            metadata={"error_id": error_id},
        ),
        service,
    )


def _pack(message: error_details_pb2.ErrorInfo | error_details_pb2.BadRequest) -> any_pb2.Any:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed
