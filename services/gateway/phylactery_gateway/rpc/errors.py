"""Failed calls in the form of Connect's unary protocol: a code, a message for people, and details for programs."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import descriptor_pool, json_format
from google.protobuf.message_factory import GetMessageClass
from google.rpc import code_pb2, error_details_pb2, status_pb2
from grpc import aio
from grpc_status import rpc_status
from phylactery_chassis.errors import DomainError, InvalidArgument, ResourceExhausted, Unavailable
from phylactery_chassis.rpc.status import internal_status, to_status

_SERVICE: Final = "gateway"
_HTTP: Final[Mapping[str, int]] = {
    "canceled": 499,
    "unknown": 500,
    "invalid_argument": 400,
    "deadline_exceeded": 504,
    "not_found": 404,
    "already_exists": 409,
    "permission_denied": 403,
    "resource_exhausted": 429,
    "failed_precondition": 400,
    "aborted": 409,
    "out_of_range": 400,
    "unimplemented": 501,
    "internal": 500,
    "unavailable": 503,
    "data_loss": 500,
    "unauthenticated": 401,
}
"""Connect's codes, which are gRPC's in small letters except for one, and their HTTP statuses."""
_CANCELED: Final = "canceled"


class Unimplemented(DomainError):
    """The method is not served here, or not in this form."""

    code = "UNIMPLEMENTED"


class DeadlineExceeded(DomainError):
    """The time of the call is over."""

    code = "DEADLINE_EXCEEDED"


@dataclass(frozen=True, slots=True)
class Failure:
    """How a call failed."""

    code: str
    message: str
    details: tuple[Any, ...] = ()

    @property
    def status(self) -> int:
        """The HTTP status."""
        return _HTTP[self.code]

    @property
    def violations(self) -> tuple[str, ...]:
        """The invalid fields that the details name."""
        bad = error_details_pb2.BadRequest()
        found = [detail for detail in self.details if detail.Unpack(bad)]
        return tuple(one.field for _ in found[:1] for one in bad.field_violations)

    def body(self) -> bytes:
        """Return the failure as JSON."""
        told: dict[str, object] = {"code": self.code, "message": self.message}
        if self.details:
            told["details"] = [_detail(one) for one in self.details]
        return json.dumps(told, ensure_ascii=False).encode()


def failure_of(error: DomainError) -> Failure:
    """Return the failure that the gateway itself refuses a call with."""
    return _from_status(to_status(error, _SERVICE))


def failure_inside(error_id: str) -> Failure:
    """Return the failure of a call that met an unexpected error, with the id under which the log has it."""
    return _from_status(internal_status(error_id, _SERVICE))


def failure_of_call(error: aio.AioRpcError) -> Failure:
    """Return the failure of a service's call.

    A status without details is gRPC's own: its text can name addresses inside the network, so it is replaced.
    """
    try:
        status = rpc_status.from_call(error)
    except ValueError:  # details of another status than the call's
        status = None
    if status is not None and status.details:
        return _failure(status)
    name = error.code().name
    replacement = _PLAIN.get(name)
    if replacement is not None:
        return failure_of(replacement)
    return Failure(_code(name), "the call failed in the service; its log says why")


_PLAIN: Final[Mapping[str, DomainError]] = {
    "UNAVAILABLE": Unavailable(
        "SERVICE_UNAVAILABLE", "the service cannot be reached at present; try again in a moment, with the same ids"
    ),
    "DEADLINE_EXCEEDED": DeadlineExceeded("DEADLINE_EXCEEDED", "the service did not answer in the time of the call"),
    "RESOURCE_EXHAUSTED": ResourceExhausted("MESSAGE_TOO_LARGE", "the message is larger than can be sent or received"),
    "UNIMPLEMENTED": Unimplemented("METHOD_NOT_SERVED", "the service does not have this method"),
    "INVALID_ARGUMENT": InvalidArgument("INVALID_REQUEST", "the service cannot read the request"),
}


def _from_status(status: Any) -> Failure:
    trailers = dict(status.trailing_metadata)
    return _failure(status_pb2.Status.FromString(trailers["grpc-status-details-bin"]))


def _failure(status: status_pb2.Status) -> Failure:
    return Failure(_code(code_pb2.Code.Name(status.code)), status.message, tuple(status.details))


def _code(name: str) -> str:
    return _CANCELED if name == "CANCELLED" else name.lower()


def _detail(packed: Any) -> dict[str, object]:
    """Return a detail as Connect has it, and readable beside it where its type is known."""
    name = packed.TypeName()
    told: dict[str, object] = {"type": name, "value": base64.b64encode(packed.value).decode().rstrip("=")}
    try:
        known = GetMessageClass(descriptor_pool.Default().FindMessageTypeByName(name))
    except KeyError:
        return told
    return told | {"debug": json_format.MessageToDict(known.FromString(packed.value))}
