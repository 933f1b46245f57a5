"""Columns derived from the fields of a record, so that a field is named once: in its dataclass or NamedTuple."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from operator import attrgetter
from typing import Any, Final, Generic, NamedTuple, TypeVar, cast

import sqlalchemy as sa

T = TypeVar("T")


def _as_is(value: Any) -> Any:
    return value


class Form(NamedTuple):
    """How a field's value is read from its column, and how it is stored there."""

    load: Callable[[Any], Any]
    store: Callable[[Any], Any] = _as_is


BOOLEAN: Final = Form(bool)
"""A truth value, which a driver may return as a number."""
JSON_TUPLE: Final = Form(lambda text: tuple(json.loads(text)), json.dumps)


class Columns(Generic[T]):
    """The columns of a table that hold the fields of a dataclass or NamedTuple, under the same names.

    ``forms`` has the fields that are stored in another form. ``besides`` are the fields that no single column of that
    name holds: they are given when a record is read, unless they have a default.
    """

    def __init__(
        self,
        kind: type[T],
        table: sa.Table,
        *,
        forms: Mapping[str, Form] | None = None,
        besides: Collection[str] = (),
    ) -> None:
        """Raise KeyError if the table has no column for a field, ValueError if a form is for none of them."""
        self._kind = kind
        self.names = tuple(name for name in field_names(kind) if name not in besides)
        """The names of the columns, in the order of the fields."""
        self.columns = tuple(table.columns[name] for name in self.names)
        self._forms = [(self.names.index(name), form) for name, form in (forms or {}).items()]
        self._by_place = not besides and (not is_dataclass(kind) or not any(one.kw_only for one in fields(kind)))
        self._get = cast("Callable[[Any], tuple[Any, ...]]", attrgetter(*self.names))

    def values(self, record: T) -> tuple[Any, ...]:
        """Return the stored values of a record, in the order of names."""
        values = list(self._get(record))
        for place, form in self._forms:
            values[place] = form.store(values[place])
        return tuple(values)

    def named(self, record: T) -> dict[str, Any]:
        """Return the stored values of a record by column."""
        return dict(zip(self.names, self.values(record), strict=True))

    def read(self, row: Any, **others: Any) -> T:
        """Return the record of a row that has at least these columns; others are the fields besides them."""
        return self.load(self._get(row), **others)

    def load(self, stored: Sequence[Any], **others: Any) -> T:
        """Return the record of stored values in the order of names; others are the fields besides them."""
        values = list(stored)
        for place, form in self._forms:
            values[place] = form.load(values[place])
        if self._by_place and not others and len(values) == len(self.names):  # a third faster than by name
            return self._kind(*values)
        return self._kind(**dict(zip(self.names, values, strict=True)), **others)


def field_names(kind: type[Any]) -> tuple[str, ...]:
    """Return the names of the fields of a dataclass or a NamedTuple."""
    named: tuple[str, ...] | None = getattr(kind, "_fields", None)
    return tuple(one.name for one in fields(kind)) if named is None else named
