"""Errors that a domain raises. They do not depend on gRPC; only status.py maps them to the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

MAX_VIOLATIONS = 20
"""Limit on field violations. Status details travel in trailers; from 8 KB on, the call fails with
RESOURCE_EXHAUSTED."""


class StartError(RuntimeError):
    """A service cannot start. The message is one sentence for a person: what is wrong, where, and what to do."""


class Violation(NamedTuple):
    """One field and what is wrong with it, at most 100 characters each."""

    field: str
    description: str


class DomainError(Exception):
    """An error a caller can act on.

    ``reason`` is a name of the service's ErrorReason without its prefix. ``message`` says what was wrong, with what,
    and what to do, and never contains a secret. ``metadata`` is for machines.
    """

    code: ClassVar[str] = "UNKNOWN"

    def __init__(
        self,
        reason: str,
        message: str,
        *,
        metadata: Mapping[str, str] | None = None,
        violations: Sequence[Violation] = (),
    ) -> None:
        super().__init__(f"{reason}: {message}")
        self.reason = reason
        self.message = message
        self.metadata = dict(metadata or {})
        self.violations = tuple(violations)[:MAX_VIOLATIONS]


class InvalidArgument(DomainError):
    """The request is invalid, whatever the state."""

    code = "INVALID_ARGUMENT"


class Unauthenticated(DomainError):
    """The caller could not be authenticated."""

    code = "UNAUTHENTICATED"


class PermissionDenied(DomainError):
    """The caller is authenticated but not authorized."""

    code = "PERMISSION_DENIED"


class NotFound(DomainError):
    """The resource does not exist for this caller."""

    code = "NOT_FOUND"


class AlreadyExists(DomainError):
    """The id is already used by something else."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(DomainError):
    """The current state does not allow the operation."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(DomainError):
    """A limit is reached."""

    code = "RESOURCE_EXHAUSTED"


class OutOfRange(DomainError):
    """The position is past the end."""

    code = "OUT_OF_RANGE"


class Unavailable(DomainError):
    """The operation failed for now: the only error a client retries blindly.

    Nothing changed, unless the message says that the outcome is unknown; a retry with the same ids then returns what
    was recorded.
    """

    code = "UNAVAILABLE"


class CommitUnknown(Unavailable):
    """The response to a commit was lost: the transaction may or may not have been kept."""


class StoreFull(ResourceExhausted):
    """A disk is full: nothing changed, and the request succeeds once there is room.

    Other limits are a definite answer; this one is a temporary failure of the store.
    """

    def __init__(self, what: str = "the database") -> None:
        """Create the error; ``what`` names the full store in the message."""
        super().__init__("STORE_FULL", f"the disk of {what} is full and nothing changed; free disk space and retry")


STORE_FAILED = (Unavailable, StoreFull)
"""Errors after which the store may accept the same request later. Unless a commit's response was lost, nothing was
kept."""


class DataLoss(DomainError):
    """Stored data is damaged."""

    code = "DATA_LOSS"


class Aborted(DomainError):
    """A concurrent change won: restart the whole operation."""

    code = "ABORTED"
