"""Fast schemas for empty SQLite databases: Alembic creates one per process, and all others are copied from it.

A start over an existing file, also of an older version, still uses Alembic.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from phylactery_chassis.db import database
from sqlalchemy.engine import Connection, Engine

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"


def write_down_schemas(*packages: str) -> None:
    """Make every Database of this process, and of its forks, use the copied schema; those of these packages at once."""
    real = database.upgrade

    @functools.cache
    def statements(package: str) -> list[tuple[str, tuple[Any, ...]]]:
        engine = sa.create_engine("sqlite://")
        try:
            real(engine, package, apply=True)
            with engine.begin() as connection:
                return _statements(connection)
        finally:
            engine.dispose()

    for package in packages:
        statements(package)
    database.upgrade = _quickly(real, statements)


def _quickly(
    real: Callable[..., None], statements: Callable[[str], list[tuple[str, tuple[Any, ...]]]]
) -> Callable[..., None]:
    def upgrade(engine: Engine, package: str, *, apply: bool) -> None:
        if apply and engine.dialect.name == "sqlite":
            with engine.begin() as connection:
                if not connection.exec_driver_sql("SELECT count(*) FROM sqlite_master").scalar_one():
                    for text, values in statements(package):
                        connection.exec_driver_sql(text, values)
                    return
        real(engine, package, apply=apply)

    return upgrade


def _statements(connection: Connection) -> list[tuple[str, tuple[Any, ...]]]:
    """Return the statements that recreate a database: its tables, indexes, and the rows its revisions inserted."""
    schema = "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
    made: list[tuple[str, tuple[Any, ...]]] = [(text, ()) for (text,) in connection.exec_driver_sql(schema)]
    for (table,) in connection.exec_driver_sql(_TABLES).all():
        for row in connection.exec_driver_sql(f'SELECT * FROM "{table}"'):
            marks = ", ".join("?" * len(row))
            made.append((f'INSERT INTO "{table}" VALUES ({marks})', tuple(row)))
    return made
