"""A unit of work: the jobs of one transaction, and what they gather to be written in one go at its end.

A store may hand rows to a part of the unit instead of writing each at once: the part keeps them, shows them to whoever
reads them in the same unit, takes them back where their job fails, and writes them all right before the commit.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any, Protocol, TypeVar, cast

from sqlalchemy.engine import Connection
from sqlalchemy.exc import OperationalError

from phylactery_chassis.db.pending_statements import line_of, run_text

_KEY = "phylactery_unit"
_SAVEPOINT = "job"


class ConflictError(Exception):
    """The jobs cannot be kept together: the unit is undone, and each runs once more.

    Another process wrote what a part relied on, or the store undid more than the job that failed.
    """


class Part(Protocol):
    """What gathers writes during a unit. None of its methods is called from two threads at once."""

    def mark(self) -> Any:
        """Return where it stands, for undo."""
        ...

    def undo(self, mark: Any) -> None:
        """Forget what came after the mark."""
        ...

    def flush(self, connection: Connection) -> None:
        """Write what it gathered. Raise ConflictError where another process was faster."""
        ...

    def settle(self, *, committed: bool) -> None:
        """Learn how the unit ended."""
        ...


AnyPart = TypeVar("AnyPart", bound=Part)


class Unit:
    """The jobs of one transaction. A job alone in it needs no savepoint: it is undone with the transaction."""

    def __init__(self, connection: Connection, *, several: bool) -> None:
        self._connection, self._several = connection, several
        self._parts: dict[Hashable, Part] = {}
        self._marks: list[tuple[Part, Any]] = []
        self._saved = False
        connection.info[_KEY] = self

    def part(self, key: Hashable, make: Callable[[], AnyPart]) -> AnyPart:
        """Return the unit's part of that name, made on first use."""
        part = self._parts.get(key)
        if part is None:
            part = self._parts[key] = make()
            self._marks.append((part, part.mark()))
        return cast("AnyPart", part)

    def find(self, key: Hashable) -> Any:
        """Return the unit's part of that name, None where nobody has used it."""
        return self._parts.get(key)

    def begin_job(self) -> None:
        """Note where every part stands."""
        self._saved = False
        self._marks = [(part, part.mark()) for part in self._parts.values()] if self._several else []

    def protect(self) -> None:
        """Make the job's savepoint before its first statement that may change something."""
        if self._several and not self._saved:
            run_text(self._connection, f"SAVEPOINT {_SAVEPOINT}")
            self._saved = True

    @property
    def alone(self) -> bool:
        """Return whether the unit is one job, which is undone with it."""
        return not self._several

    @property
    def protected(self) -> bool:
        """Return whether the job at hand can be undone alone, whatever it did to the database."""
        return self._saved

    def end_job(self, *, failed: bool) -> None:
        """Keep the job's writes, or undoes them alone. Raise ConflictError where the others are undone with them."""
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
            told.later.clear()  # what the job left to be said is said no more
        try:
            run_text(self._connection, f"ROLLBACK TO SAVEPOINT {_SAVEPOINT}")
        except OperationalError as lost:
            if self._connection.dialect.name != "sqlite":
                raise
            # where SQLite had no memory it ended the transaction by itself, and the savepoint with it
            raise ConflictError from lost

    def flush(self) -> None:
        """Write what the parts gathered, in the order they came in."""
        self._several = False
        for part in self._parts.values():
            part.flush(self._connection)

    def settle(self, *, committed: bool) -> None:
        """Tell every part how the unit ended."""
        for part in self._parts.values():
            part.settle(committed=committed)

    def close(self) -> None:
        """Let go of the connection, which goes back to its pool."""
        with suppress(Exception):  # a connection that broke is thrown away with what hangs on it
            self._connection.info.pop(_KEY, None)


def unit_of(connection: Connection) -> Unit | None:
    """Return the unit a job runs in, None on a connection that only reads."""
    return cast("Unit | None", connection.info.get(_KEY))
