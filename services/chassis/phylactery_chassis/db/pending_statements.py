"""The driver's own cursor behind a SQLAlchemy connection, with SQLAlchemy's errors.

Every statement of a server has its way to go, and back. So a transaction's BEGIN goes along with its first statement,
and what a writer has to say and wants no answer to waits for the next statement, or for the commit: see Line.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

_LINE = "phylactery_line"

# It warns of a second error of what goes together in the server's own words, which hold values of rows.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)


@dataclass(slots=True)
class Line:
    """A transaction of a writer on a server: what is still to be said in it, and whether the server answered yet."""

    later: list[tuple[str, Any]] = field(default_factory=list)
    heard: bool = False


def old_libpq(dialect: sa.Dialect) -> str:
    """Return the version of a server's client library that cannot say several things at once; empty where it can."""
    driver: Any = dialect.loaded_dbapi if dialect.name == "postgresql" else None
    return "" if driver is None or driver.Pipeline.is_supported() else str(driver.pq.version() // 10_000)


@contextlib.contextmanager
def line(connection: Connection) -> Iterator[Line]:
    """Let what can wait wait on this connection, for the block."""
    opened = connection.info[_LINE] = Line()
    try:
        yield opened
    finally:
        with contextlib.suppress(Exception):  # a connection that broke is thrown away with what hangs on it
            connection.info.pop(_LINE, None)


def line_of(connection: Connection) -> Line | None:
    """Return the line of a writer's transaction; None on a file, and on a connection that only reads."""
    found: Line | None = connection.info.get(_LINE)
    return found


def run_text(connection: Connection, text: str, values: Any = ()) -> Any:
    """Run a text in the driver's own style of parameters and return its cursor. Raise as SQLAlchemy does.

    What was to be said later is said before it.
    """
    try:
        cursor = connection.connection.cursor()
        if connection.dialect.name == "sqlite":  # where nothing waits, and asking costs as much as a statement does
            cursor.execute(text, values)
            return cursor
        told = line_of(connection)
        with _together(connection, told):
            cursor.execute(text, values)
    except Exception as error:
        raise _as_sqlalchemy(connection, error) from error
    if told is not None:
        told.heard = True
    return cursor


def run_each(connection: Connection, text: str, rows: Sequence[Any]) -> None:
    """Run a text that changes something for one row after the other, as one call of the driver; on a server later."""
    told = line_of(connection)
    if told is not None:
        told.later += [(text, values) for values in rows]
        return
    try:
        cursor = connection.connection.cursor()
        cursor.executemany(text, rows)
        cursor.close()
    except Exception as error:
        raise _as_sqlalchemy(connection, error) from error


def run_later(connection: Connection, text: str, values: Any) -> None:
    """Run a text of which nobody asks more than that it works: on a server with the next statement, or the commit."""
    told = line_of(connection)
    if told is None:
        run_text(connection, text, values).close()
    else:
        told.later.append((text, values))


def say(connection: Connection) -> None:
    """Say what was to be said later, and hear that it worked. Raise as SQLAlchemy does."""
    told = line_of(connection)
    if told is None or not told.later:
        return
    try:
        with _together(connection, told):
            pass
    except Exception as error:
        raise _as_sqlalchemy(connection, error) from error
    told.heard = True


def say_and_commit(connection: Connection) -> None:
    """Say what was to be said later, and COMMIT with it: SQLAlchemy's own has nothing left to do then."""
    run_text(connection, "COMMIT").close()


@contextlib.contextmanager
def _together(connection: Connection, told: Line | None) -> Iterator[None]:
    """Have what waits, and a server's BEGIN to come, go the way of the block's statement, without an answer each.

    The block's cursor has its answer at the end of it.
    """
    session: Any = connection.connection.dbapi_connection
    waiting = [] if told is None else told.later
    idle = session.info.transaction_status == 0 and not session.autocommit
    if not waiting and not idle:
        yield
        return
    with session.pipeline():
        if told is not None:
            told.later = []
        for text, values in waiting:
            session.cursor().execute(text, values)
        yield


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
