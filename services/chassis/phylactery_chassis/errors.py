"""The errors a domain may raise. They know nothing of gRPC; status.py alone maps them to the wire."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar, NamedTuple

MAX_VIOLATIONS = 20
"""Status details travel in trailers: from 8 KB on, a call would turn into RESOURCE_EXHAUSTED."""


class StartError(RuntimeError):
    """A service cannot start. The message is one sentence for a person: what is wrong, where, and what to do."""


class Violation(NamedTuple):
    """One field and what is wrong with it, at most 100 characters each."""

    field: str
    description: str


class DomainError(Exception):
    """An error a caller can act on.

    reason is a name of the service's ErrorReason without its prefix; message says what was wrong, with what, and what
    to do, and never holds a secret; metadata is for machines.
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
    """The request itself is wrong, whatever the state."""

    code = "INVALID_ARGUMENT"


class Unauthenticated(DomainError):
    """Nobody knows who calls."""

    code = "UNAUTHENTICATED"


class PermissionDenied(DomainError):
    """The caller is known and may not."""

    code = "PERMISSION_DENIED"


class NotFound(DomainError):
    """There is no such thing for this caller."""

    code = "NOT_FOUND"


class AlreadyExists(DomainError):
    """The id is taken by something else."""

    code = "ALREADY_EXISTS"


class FailedPrecondition(DomainError):
    """The state does not allow it now."""

    code = "FAILED_PRECONDITION"


class ResourceExhausted(DomainError):
    """A limit is reached."""

    code = "RESOURCE_EXHAUSTED"


class OutOfRange(DomainError):
    """The position lies past the end."""

    code = "OUT_OF_RANGE"


class Unavailable(DomainError):
    """It did not work now: the only error a client retries blindly.

    Nothing changed, unless the message says that nobody knows; the same ids then answer what was recorded.
    """

    code = "UNAVAILABLE"


class AnswerLost(Unavailable):
    """A commit whose answer was not heard: what it was to keep may be kept, and nobody knows."""


class StoreFull(ResourceExhausted):
    """A disk is full: nothing changed, and the same is taken as soon as there is room.

    Every other limit is an answer; this one is a store that does not answer, for now.
    """

    def __init__(self, what: str = "the database") -> None:
        """Take what the disk is below, as a sentence names it."""
        super().__init__("STORE_FULL", f"the disk below {what} is full, so nothing changed; make room and try again")


STORE_FAILED = (Unavailable, StoreFull)
"""Either way the store may take the same later; it took nothing yet, but where its answer was lost."""


class DataLoss(DomainError):
    """What was stored is damaged."""

    code = "DATA_LOSS"


class Aborted(DomainError):
    """Somebody else was faster: start the whole operation again."""

    code = "ABORTED"
