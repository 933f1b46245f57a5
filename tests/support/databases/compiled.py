"""Statements that are compiled once per process: every test opens databases of its own, with the same statements.

SQLAlchemy keeps what it has compiled with the engine. So whatever a test did to a database was compiled anew, which was
a third of the processor time of tests that start a service.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.dialects.sqlite.base import SQLiteDialect
from sqlalchemy.util import LRUCache

_MOST = 4_000
_shared: LRUCache[Any, Any] = LRUCache(_MOST)


class _Compiled(LRUCache[Any, Any]):
    """What one engine has compiled, and what all share."""

    def get(self, key: Any, default: Any = None) -> Any:
        found = _shared.get(key)
        return super().get(key, default) if found is None else found

    def __setitem__(self, key: Any, value: Any) -> None:
        if _is_of_one_database(value):
            super().__setitem__(key, value)
        else:
            _shared[key] = value


def _is_of_one_database(compiled: Any) -> bool:
    """Return whether what is kept with a statement depends on the database.

    A sealed column opens with its key; and a written text may return other columns elsewhere.
    """
    written = isinstance(compiled.statement, sa.TextClause)
    return written or any(isinstance(one, sa.types.TypeDecorator) for one in _types(compiled))


def _types(compiled: Any) -> Iterator[Any]:
    yield from (bound.type for bound in compiled.bind_names)
    yield from (column.type for column in compiled._result_columns)


def share_compiled_statements() -> None:
    """Make all engines of this process that are created from now on share what they compile."""
    create = sa.create_engine
    for dialect in (SQLiteDialect, PGDialect):  # a statement is kept for its dialect: all of one class are one
        dialect.__hash__ = lambda one: hash(type(one))  # type: ignore[method-assign]
        dialect.__eq__ = lambda one, other: type(one) is type(other)  # type: ignore[method-assign]

    def create_sharing(*words: Any, **options: Any) -> sa.Engine:
        engine = create(*words, **options)
        engine._compiled_cache = _Compiled(_MOST)
        return engine

    sa.create_engine = create_sharing
