"""Statements that run often, compiled once and run on the driver's own cursor.

SQLAlchemy takes several times as long to run a statement as SQLite does, so what stands in every request's way goes
past it. A statement is still built with SQLAlchemy, for both stores alike, and its errors are SQLAlchemy's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_chassis.driver import run_text
from phylactery_chassis.unit import unit_of

_MAX_ROWS = 64
"""Rows in one INSERT; fewer go in powers of two, so that the driver knows every text it is given."""


class _Compiled:
    """A statement with named parameters, as text for each store; what is fixed in it goes along with the others."""

    def __init__(self, statement: sa.ClauseElement) -> None:
        self._statement = statement
        self._texts: dict[str, tuple[str, tuple[str, ...] | None, dict[str, Any]]] = {}

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        name = connection.dialect.name
        found = self._texts.get(name)
        if found is None:
            compiled: Any = self._statement.compile(dialect=connection.dialect)
            order = getattr(compiled, "positiontup", None)
            fixed = {key: value for key, value in compiled.params.items() if value is not None}
            found = self._texts[name] = (str(compiled), None if order is None else tuple(order), fixed)
        text, names, fixed = found
        if fixed:
            values = {**fixed, **values}
        return run_text(connection, text, values if names is None else [values[name] for name in names])


class Query(_Compiled):
    """A SELECT."""

    def __init__(self, statement: sa.SelectBase) -> None:
        super().__init__(statement)

    def one(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Answers the first row in the order of its columns, None where there is none."""
        cursor = self._run(connection, values)
        row: Sequence[Any] | None = cursor.fetchone()
        cursor.close()
        return row

    def all(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """Answers every row in the order of its columns."""
        cursor = self._run(connection, values)
        rows: Sequence[Sequence[Any]] = cursor.fetchall()
        cursor.close()
        return rows


class Update(_Compiled):
    """An UPDATE or DELETE, or a text with named parameters that changes something on both stores."""

    def __init__(self, statement: sa.Update | sa.Delete | sa.TextClause) -> None:
        super().__init__(statement)

    def run(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Runs it and answers how many rows it met."""
        _protect(connection)
        cursor = self._run(connection, values)
        count = int(cursor.rowcount)
        cursor.close()
        return count


class RowInsert:
    """An INSERT of many rows of one table, given as tuples in the order of the columns named here.

    ``otherwise`` is what both stores take after the rows, such as ON CONFLICT DO NOTHING.
    """

    def __init__(self, table: sa.Table, *columns: str, otherwise: str = "") -> None:
        self._table, self._otherwise = table, otherwise
        self._columns = [table.columns[name].name for name in columns]
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Adds the rows. Raises IntegrityError where one stands there already."""
        if rows:
            _protect(connection)
        at = 0
        while at < len(rows):
            size = min(_MAX_ROWS, 1 << (len(rows) - at).bit_length() - 1)
            some = rows[at : at + size]
            run_text(connection, self._text(connection, size), [value for row in some for value in row]).close()
            at += size

    def _text(self, connection: Connection, size: int) -> str:
        key = connection.dialect.name, size
        text = self._texts.get(key)
        if text is None:
            quote = connection.dialect.identifier_preparer.quote
            columns = ", ".join(quote(name) for name in self._columns)
            mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
            row = f"({', '.join([mark] * len(self._columns))})"
            text = f"INSERT INTO {quote(self._table.name)} ({columns}) VALUES {', '.join([row] * size)}"  # noqa: S608 - names of our own tables
            self._texts[key] = text = f"{text} {self._otherwise}".rstrip()
        return text


def _protect(connection: Connection) -> None:
    unit = unit_of(connection)
    if unit is not None:
        unit.protect()
