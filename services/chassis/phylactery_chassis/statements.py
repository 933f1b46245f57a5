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


class Query:
    """A SELECT with named parameters."""

    def __init__(self, statement: sa.Select[Any]) -> None:
        self._statement = statement
        self._compiled: dict[str, tuple[str, tuple[str, ...] | None]] = {}

    def one(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any] | None:
        """Answers the one row in the order of its columns, None where there is none."""
        text, names = self._for(connection)
        cursor = run_text(connection, text, values if names is None else [values[name] for name in names])
        row: Sequence[Any] | None = cursor.fetchone()
        cursor.close()
        return row

    def _for(self, connection: Connection) -> tuple[str, tuple[str, ...] | None]:
        name = connection.dialect.name
        found = self._compiled.get(name)
        if found is None:
            compiled = self._statement.compile(dialect=connection.dialect)
            order = getattr(compiled, "positiontup", None)
            found = self._compiled[name] = (str(compiled), None if order is None else tuple(order))
        return found


class RowInsert:
    """An INSERT of many rows of one table, given as tuples in the order of its columns."""

    def __init__(self, table: sa.Table) -> None:
        self._table = table
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Adds the rows. Raises IntegrityError where one stands there already."""
        unit = unit_of(connection)
        if unit is not None:
            unit.protect()
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
            columns = ", ".join(quote(column.name) for column in self._table.columns)
            mark = "?" if connection.dialect.paramstyle == "qmark" else "%s"
            row = f"({', '.join([mark] * len(self._table.columns))})"
            text = f"INSERT INTO {quote(self._table.name)} ({columns}) VALUES {', '.join([row] * size)}"  # noqa: S608 - names of our own tables
            self._texts[key] = text
        return text
