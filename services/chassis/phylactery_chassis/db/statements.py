"""Frequent statements, compiled once and run on the driver's own cursor.

SQLAlchemy takes several times as long to run a statement as SQLite does, so statements on the path of every request
bypass it. They are still built with SQLAlchemy for both stores, and raise SQLAlchemy's errors.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.pending_statements import run_later, run_text
from phylactery_chassis.db.unit import unit_of

_K = TypeVar("_K")
_Bound = tuple[str, sa.TypeDecorator[Any]]
_MAX_ROWS = 64
"""Rows in one INSERT; smaller batches are powers of two, so that few distinct statements reach the driver."""


class Record(tuple[Any, ...]):
    """A row: its values in column order, also accessible by column name, as the driver returned them."""

    __slots__ = ()

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return the value of a column."""


def _record(columns: Iterable[str]) -> type[Record]:
    """Return the row class for these columns."""
    named = {name: property(itemgetter(place)) for place, name in enumerate(columns)}
    return type("Record", (Record,), {"__slots__": (), **named})


def _own_types(kinds: Iterable[tuple[_K, sa.types.TypeEngine[Any]]]) -> list[tuple[_K, sa.TypeDecorator[Any]]]:
    """Return which of these have a type that stores its values in a form of its own, such as a sealed one."""
    return [(key, kind) for key, kind in kinds if isinstance(kind, sa.TypeDecorator)]


class _Compiled:
    """A statement with named parameters, compiled per store; its constant parameters are added to each call."""

    def __init__(self, statement: sa.ClauseElement) -> None:
        self._statement = statement
        self._texts: dict[str, tuple[str, tuple[str, ...] | None, dict[str, Any], list[_Bound]]] = {}

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        return run_text(connection, *self._said(connection, values))

    def _said(self, connection: Connection, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Return the text and its values in this connection's parameter style."""
        name = connection.dialect.name
        found = self._texts.get(name)
        if found is None:
            compiled: Any = self._statement.compile(dialect=connection.dialect)
            order = getattr(compiled, "positiontup", None)
            fixed = {key: value for key, value in compiled.params.items() if value is not None}
            own = _own_types((key, bound.type) for bound, key in compiled.bind_names.items())
            found = self._texts[name] = (str(compiled), None if order is None else tuple(order), fixed, own)
        text, names, fixed, own = found
        if fixed or own:
            values = {**fixed, **values}
        for key, kind in own:
            values = {**values, key: kind.process_bind_param(values[key], connection.dialect)}
        return text, values if names is None else [values[name] for name in names]


class Query(_Compiled):
    """A SELECT."""

    def __init__(self, statement: sa.SelectBase | sa.ReturnsRows) -> None:
        super().__init__(statement)
        self._named = _record(statement.exported_columns.keys())
        self._own = _own_types((place, column.type) for place, column in enumerate(statement.exported_columns))

    def _read(self, connection: Connection, row: Sequence[Any]) -> Record:
        if not self._own:
            return self._named(row)
        values = list(row)
        for place, kind in self._own:
            values[place] = kind.process_result_value(values[place], connection.dialect)
        return self._named(values)

    def one(self, connection: Connection, values: Mapping[str, Any]) -> Record | None:
        """Return the first row, None if there is none."""
        cursor = self._run(connection, values)
        row = cursor.fetchone()
        cursor.close()
        return None if row is None else self._read(connection, row)

    def all(self, connection: Connection, values: Mapping[str, Any]) -> list[Record]:
        """Return every row."""
        cursor = self._run(connection, values)
        rows = cursor.fetchall()
        cursor.close()
        return [self._read(connection, row) for row in rows]

    def each(self, connection: Connection, values: Mapping[str, Any]) -> Generator[Record, None, None]:
        """Yield the rows one by one, fetched as needed. The generator must be closed."""
        cursor = self._run(connection, values)
        try:
            for row in cursor:
                yield self._read(connection, row)
        finally:
            cursor.close()


class Change(Query):
    """An INSERT, UPDATE or DELETE that returns the changed rows (RETURNING) in their new state."""

    def __init__(self, statement: sa.ReturnsRows) -> None:
        super().__init__(statement)

    def _run(self, connection: Connection, values: Mapping[str, Any]) -> Any:
        _protect(connection)
        return super()._run(connection, values)


class Update(_Compiled):
    """An INSERT, UPDATE or DELETE, or a text with named parameters, that changes rows on both stores."""

    def __init__(self, statement: sa.Insert | sa.Update | sa.Delete | sa.TextClause) -> None:
        super().__init__(statement)

    def run(self, connection: Connection, values: Mapping[str, Any]) -> int:
        """Run it and return the number of matched rows."""
        _protect(connection)
        cursor = self._run(connection, values)
        count = int(cursor.rowcount)
        cursor.close()
        return count

    def later(self, connection: Connection, values: Mapping[str, Any]) -> None:
        """Run it deferred, without a result; see pending_statements.run_later."""
        _protect(connection)
        run_later(connection, *self._said(connection, dict(values)))  # a copy: the caller may reuse its own


class RowInsert:
    """A multi-row INSERT into one table; rows are tuples in the order of the columns given here.

    ``otherwise`` is a clause after the rows that both stores accept, such as ON CONFLICT DO NOTHING.
    """

    def __init__(self, table: sa.Table, *columns: str, otherwise: str = "") -> None:
        self._table, self._otherwise = table, otherwise
        self._columns = [table.columns[name].name for name in columns]
        self._own = _own_types((place, table.columns[name].type) for place, name in enumerate(columns))
        self._texts: dict[tuple[str, int], str] = {}

    def run(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert the rows. Raise IntegrityError on a duplicate."""
        for text, values in self._said(connection, rows):
            run_text(connection, text, values).close()

    def later(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert the rows deferred, without a result; see pending_statements.run_later."""
        for text, values in self._said(connection, rows):
            run_later(connection, text, values)

    def _said(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
        if rows:
            _protect(connection)
        rows = [self._stored(connection, row) for row in rows] if self._own else rows
        at = 0
        while at < len(rows):
            size = min(_MAX_ROWS, 1 << (len(rows) - at).bit_length() - 1)
            some = rows[at : at + size]
            yield self._text(connection, size), [value for row in some for value in row]
            at += size

    def _stored(self, connection: Connection, row: tuple[Any, ...]) -> tuple[Any, ...]:
        values = list(row)
        for place, kind in self._own:
            values[place] = kind.process_bind_param(values[place], connection.dialect)
        return tuple(values)

    def _text(self, connection: Connection, size: int) -> str:
        key = connection.dialect.name, size
        text = self._texts.get(key)
        if text is None:
            quote = connection.dialect.identifier_preparer.quote
            columns = ", ".join(quote(name) for name in self._columns)
            mark = dialect_of(connection).mark
            row = f"({', '.join([mark] * len(self._columns))})"
            text = f"INSERT INTO {quote(self._table.name)} ({columns}) VALUES {', '.join([row] * size)}"  # noqa: S608 - the names are those of our own tables
            self._texts[key] = text = f"{text} {self._otherwise}".rstrip()
        return text


class ManyInsert(RowInsert):
    """A RowInsert for varying numbers of rows of texts, numbers and bytes, none of them NULL.

    A server receives one array per column: a single statement text, planned once for any number of rows. With one
    parameter per value, the driver would parse and the server would plan a new text for each number of rows.
    """

    def __init__(
        self,
        table: sa.Table,
        *columns: str,
        otherwise: str = "",
        found: Mapping[str, str] | None = None,
    ) -> None:
        """``found`` maps further columns to SQL expressions over the row alias ``given``, evaluated by the server."""
        super().__init__(table, *columns, otherwise=otherwise)
        self._found = dict(found or {})

    def _said(self, connection: Connection, rows: Sequence[tuple[Any, ...]]) -> Iterator[tuple[str, list[Any]]]:
        if len(rows) == 1 or not dialect_of(connection).is_server:
            yield from super()._said(connection, rows)
        elif rows:
            _protect(connection)
            rows = [self._stored(connection, row) for row in rows] if self._own else rows
            yield self._of_arrays(connection), [list(column) for column in zip(*rows, strict=True)]

    def _of_arrays(self, connection: Connection) -> str:
        key = connection.dialect.name, 0
        text = self._texts.get(key)
        if text is None:
            quote = connection.dialect.identifier_preparer.quote
            names = [quote(name) for name in self._columns]
            kinds = [self._table.columns[name].type for name in self._columns]
            # A cast to VARCHAR(9) would silently truncate a longer text; with TEXT the column itself rejects it.
            given = ["TEXT" if isinstance(kind, sa.String) else kind.compile(connection.dialect) for kind in kinds]
            arrays = ", ".join(f"%b::{kind}[]" for kind in given)
            into = ", ".join([*names, *map(quote, self._found)])
            values = ", ".join([*(f"given.{name}" for name in names), *self._found.values()])
            text = (
                f"INSERT INTO {quote(self._table.name)} ({into}) SELECT {values}"  # noqa: S608 - as above
                f" FROM unnest({arrays}) AS given ({', '.join(names)})"
            )
            self._texts[key] = text = f"{text} {self._otherwise}".rstrip()
        return text


class RowUpdate:
    """An UPDATE of the rows of one table with a given key; the columns to set are named in each call."""

    def __init__(self, table: sa.Table, *key: str) -> None:
        self._table = table
        self._key = [table.columns[name].name for name in key]
        self._own = dict(_own_types((column.name, column.type) for column in table.columns))
        self._texts: dict[tuple[str, ...], str] = {}

    def run(self, connection: Connection, *key: Any, **values: Any) -> int:
        """Set columns by name where the key matches; return the number of rows."""
        _protect(connection)
        cursor = run_text(connection, self._text(connection, tuple(values)), [*self._stored(connection, values), *key])
        count = int(cursor.rowcount)
        cursor.close()
        return count

    def later(self, connection: Connection, *key: Any, **values: Any) -> None:
        """Run the update deferred, without a result; see pending_statements.run_later."""
        _protect(connection)
        run_later(connection, self._text(connection, tuple(values)), [*self._stored(connection, values), *key])

    def _stored(self, connection: Connection, values: Mapping[str, Any]) -> Iterator[Any]:
        for name, value in values.items():
            kind = self._own.get(name)
            yield value if kind is None else kind.process_bind_param(value, connection.dialect)

    def _text(self, connection: Connection, names: tuple[str, ...]) -> str:
        kind = (connection.dialect.name, *names)
        text = self._texts.get(kind)
        if text is None:
            quote = connection.dialect.identifier_preparer.quote
            mark = dialect_of(connection).mark
            settings = ", ".join(f"{quote(self._table.columns[name].name)} = {mark}" for name in names)
            where = " AND ".join(f"{quote(name)} = {mark}" for name in self._key)
            text = f"UPDATE {quote(self._table.name)} SET {settings} WHERE {where}"  # noqa: S608 - the names are those of our own columns
            self._texts[kind] = text
        return text


def _protect(connection: Connection) -> None:
    unit = unit_of(connection)
    if unit is not None:
        unit.protect()
