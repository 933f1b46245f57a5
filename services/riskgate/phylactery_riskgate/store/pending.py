"""Rows of one table that a unit of work writes together at its end, found by their keys until then."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Generic, TypeVar

from phylactery_chassis.db.unit import unit_of
from sqlalchemy.engine import Connection

Row = TypeVar("Row")

Keys = tuple[Hashable, ...]
"""All a row is found by; the first tells which row it is."""


class PendingRows(Generic[Row]):
    """A part of a unit of work; see the module."""

    def __init__(self, keys: Callable[[Row], Keys], write: Callable[[Connection, Sequence[Row]], None]) -> None:
        """Take what answers a row's keys, and what adds many rows at once."""
        self._keys, self._write = keys, write
        self._made: list[tuple[int, Row]] = []
        self._found: dict[Hashable, tuple[int, Row]] = {}

    def add(self, row: Row) -> None:
        """Add a row; of two with the same key both are written, and the store refuses the second."""
        self._put(len(self._made), row)

    def change(self, row: Row) -> None:
        """Put a row in the place of the one with its first key. Raise KeyError where there is none."""
        self._put(self._found[self._keys(row)[0]][0], row)

    def find(self, key: Hashable) -> Row | None:
        """Return a row that is not written yet."""
        found = self._found.get(key)
        return None if found is None else found[1]

    def mark(self) -> int:
        """Return where it stands, for undo."""
        return len(self._made)

    def undo(self, mark: int) -> None:
        """Forget what came after the mark."""
        kept = self._made[:mark]
        self._made.clear()
        self._found.clear()
        for number, row in kept:
            self._put(number, row)

    def flush(self, connection: Connection) -> None:
        """Write every row as it is now. Raise IntegrityError when another process added one first."""
        self._write(connection, list(dict(self._made).values()))

    def _put(self, number: int, row: Row) -> None:
        self._made.append((number, row))
        self._found.update(dict.fromkeys(self._keys(row), (number, row)))

    def settle(self, *, committed: bool) -> None:
        """Have nothing to remember."""


class Gathered(Generic[Row]):
    """The rows of one table, gathered by whatever unit of work the connection is in."""

    def __init__(self, keys: Callable[[Row], Keys], write: Callable[[Connection, Sequence[Row]], None]) -> None:
        """Take what PendingRows takes."""
        self._keys, self._write = keys, write

    def add(self, connection: Connection, row: Row) -> None:
        """Add a row, with everything else of the unit of work at its end, or at once where there is none."""
        unit = unit_of(connection)
        if unit is None:
            self._write(connection, [row])
        else:
            unit.part(self, lambda: PendingRows(self._keys, self._write)).add(row)

    def change(self, connection: Connection, key: Hashable, change: Callable[[Row], Row]) -> bool:
        """Change a row that the unit of work has not written yet, but for its keys; say whether there is one."""
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
