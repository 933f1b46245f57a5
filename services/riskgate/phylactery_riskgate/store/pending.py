"""Pending rows of one table, written together at the end of a unit of work and found by key until then."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from phylactery_chassis.db.unit import unit_of
from sqlalchemy.engine import Connection

Row = TypeVar("Row")

Keys = tuple[Hashable, ...]
"""All keys of a row; the first identifies it."""


class PendingRows(Generic[Row]):
    """The pending rows of one table, as a part of a unit of work."""

    def __init__(self, keys: Callable[[Row], Keys], write: Callable[[Connection, Sequence[Row]], None]) -> None:
        """Set the function that returns a row's keys, and the one that inserts many rows."""
        self._keys, self._write = keys, write
        self._made: list[tuple[int, Row]] = []
        self._found: dict[Hashable, tuple[int, Row]] = {}

    def add(self, row: Row) -> None:
        """Add a row; of two with the same key both are written, and the store refuses the second."""
        self._put(len(self._made), row)

    def change(self, row: Row) -> None:
        """Replace the row with the same first key. Raise KeyError if there is none."""
        self._put(self._found[self._keys(row)[0]][0], row)

    def find(self, key: Hashable) -> Row | None:
        """Return a row that is not written yet."""
        found = self._found.get(key)
        return None if found is None else found[1]

    def mark(self) -> int:
        """Return a savepoint for undo."""
        return len(self._made)

    def undo(self, mark: int) -> None:
        """Discard everything after the mark."""
        kept = self._made[:mark]
        self._made.clear()
        self._found.clear()
        for number, row in kept:
            self._put(number, row)

    def flush(self, connection: Connection) -> None:
        """Write the current version of every row. Raise IntegrityError if another process inserted one first."""
        self._write(connection, list(dict(self._made).values()))

    def _put(self, number: int, row: Row) -> None:
        self._made.append((number, row))
        self._found.update(dict.fromkeys(self._keys(row), (number, row)))

    def settle(self, *, committed: bool) -> None:
        """No-op."""


class Gathered(Generic[Row]):
    """Pending rows of one table in the connection's unit of work."""

    def __init__(self, keys: Callable[[Row], Keys], write: Callable[[Connection, Sequence[Row]], None]) -> None:
        """Store the arguments of PendingRows."""
        self._keys, self._write = keys, write

    def add(self, connection: Connection, row: Row) -> None:
        """Add a row to the unit of work, or write it at once if there is none."""
        unit = unit_of(connection)
        if unit is None:
            self._write(connection, [row])
        else:
            unit.part(self, lambda: PendingRows(self._keys, self._write)).add(row)

    def change(self, connection: Connection, key: Hashable, change: Callable[[Row], Row]) -> bool:
        """Change an unwritten row of the unit of work, except for its keys; return True if there is one."""
        pending = self._pending(connection)
        row = None if pending is None else pending.find(key)
        if pending is None or row is None:
            return False
        pending.change(change(row))
        return True

    def find(self, connection: Connection, key: Hashable) -> Row | None:
        """Return a row that the unit of work has not written yet."""
        pending = self._pending(connection)
        return None if pending is None else pending.find(key)

    def _pending(self, connection: Connection) -> PendingRows[Row] | None:
        unit = unit_of(connection)
        found: PendingRows[Row] | None = None if unit is None else unit.find(self)
        return found
