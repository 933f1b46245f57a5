"""A unit of work: the jobs of one transaction, and the writes they defer to its end.

A store may hand rows to a part of the unit instead of writing each at once. The part buffers them, returns them to
readers in the same unit, discards those of a failed job, and writes them all just before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.pending_statements import line_of, run_text

_KEY = "phylactery_unit"
_SAVEPOINT = "job"


class ConflictError(Exception):
    """The jobs cannot be committed together: the unit is rolled back, and each job runs again.

    Another process changed what a part relied on, or the store rolled back more than the failed job.
    """


class Part(Protocol):
    """A buffer of writes during a unit. Its methods are never called from two threads at once."""

    def mark(self) -> Any:
        """Return the current position, for undo."""
        ...

    def undo(self, mark: Any) -> None:
        """Discard what was added after the mark."""
        ...

    def flush(self, connection: Connection) -> None:
        """Write the buffered rows. Raise ConflictError if another process won a race."""
        ...

    def settle(self, *, committed: bool) -> None:
        """Notify the part of the unit's outcome."""
        ...


AnyPart = TypeVar("AnyPart", bound=Part)


class Unit:
    """The jobs of one transaction. A single job needs no savepoint: it is rolled back with the transaction."""

    def __init__(self, connection: Connection, *, several: bool) -> None:
        self._connection, self._several = connection, several
        self._parts: dict[Hashable, Part] = {}
        self._marks: list[tuple[Part, Any]] = []
        self._saved = False
        connection.info[_KEY] = self

    def part(self, key: Hashable, make: Callable[[], AnyPart]) -> AnyPart:
        """Return the unit's part for a key, created on first use."""
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = make()
            self._marks.append((part, part.mark()))
        return cast("AnyPart", part)

    def find(self, key: Hashable) -> Any:
        """Return the unit's part for a key, None if it has not been used."""
        return self._parts.get(key)

    def begin_job(self) -> None:
        """Mark the position of every part."""
        self._saved = False
        self._marks = [(part, part.mark()) for part in self._parts.values()] if self._several else []

    def protect(self) -> None:
        """Create the job's savepoint before its first statement that may change something."""
        if self._several and not self._saved:
            run_text(self._connection, f"SAVEPOINT {_SAVEPOINT}")
            self._saved = True

    @property
    def alone(self) -> bool:
        """True if the unit is a single job, which is rolled back with it."""
        return not self._several

    @property
    def protected(self) -> bool:
        """True if the current job has a savepoint, so that it can be rolled back alone."""
        return self._saved

    def end_job(self, *, failed: bool) -> None:
        """Keep the job's writes or roll back only them. Raise ConflictError if the other jobs' writes are lost too."""
        if failed:
            for part, mark in self._marks:
                part.undo(mark)
        if self._saved:
            if failed:
                self._roll_back()
            run_text(self._connection, f"RELEASE SAVEPOINT {_SAVEPOINT}")
            self._saved = False

    def _roll_back(self) -> None:
        told = line_of(self._connection)
        if told is not None:
            told.later.clear()  # discard what the failed job queued
        try:
            run_text(self._connection, f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        except OperationalError as lost:
            if dialect_of(self._connection).is_server:
                raise
            # Out of memory, SQLite ends the transaction itself, and the savepoint with it.
            raise ConflictError from lost

    def flush(self) -> None:
        """Write what the parts buffered, in the order of their creation."""
        self._several = False
        for part in self._parts.values():
            part.flush(self._connection)

    def settle(self, *, committed: bool) -> None:
        """Notify every part of the unit's outcome."""
        for part in self._parts.values():
            part.settle(committed=committed)

    def close(self) -> None:
        """Detach from the connection, which returns to its pool."""
        with suppress(Exception):  # a broken connection is discarded together with its info
            self._connection.info.pop(_KEY, None)


def unit_of(connection: Connection) -> Unit | None:
    """Return the unit of the current job, None on a read-only connection."""
    return cast("Unit | None", connection.info.get(_KEY))
