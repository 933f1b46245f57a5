"""The driver's own cursor behind a SQLAlchemy connection, with SQLAlchemy's errors."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection


def run_text(connection: Connection, text: str, values: Any = ()) -> Any:
    """Runs a text in the driver's own style of parameters and answers its cursor. Raises as SQLAlchemy does."""
    try:
        cursor = connection.connection.cursor()
        cursor.execute(text, values)
    except Exception as error:
        raise _as_sqlalchemy(connection, error) from error
    return cursor


def _as_sqlalchemy(connection: Connection, error: Exception) -> Exception:
    dialect = connection.dialect
    base = dialect.loaded_dbapi.Error
    if not isinstance(error, base):
        return error
    lost = dialect.is_disconnect(error, connection.connection.dbapi_connection, None)
    if lost:
        connection.invalidate(error)
    wrapped = sa.exc.DBAPIError.instance(
        "", None, error, base, hide_parameters=True, connection_invalidated=lost, dialect=dialect
    )
    return wrapped if isinstance(wrapped, Exception) else error
