"""Statements on the driver's own cursor, with SQLAlchemy's errors, and statements deferred to save round trips.

Each statement on a server is a round trip. So a transaction's BEGIN is sent with its first statement, and a writer's
statements without a result are queued until the next statement or the commit: see Line.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.engine import Connection

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.errors import as_sqlalchemy

_LINE = "phylactery_line"

# psycopg logs a second error of a pipeline in the server's own words, which contain values of rows.
logging.getLogger("psycopg").setLevel(logging.CRITICAL)


@dataclass(slots=True)
class PendingStatements:
    """A writer's transaction on a server: its queued statements (``later``) and whether the server has responded."""

    later: list[tuple[str, Any]] = field(default_factory=list)
    heard: bool = False


@contextlib.contextmanager
def line(connection: Connection) -> Iterator[PendingStatements]:
    """Queue deferrable statements on this connection for the block."""
    opened = connection.info[_LINE] = PendingStatements()
    try:
        yield opened
    finally:
        with contextlib.suppress(Exception):  # a broken connection is discarded together with its info
            connection.info.pop(_LINE, None)


def line_of(connection: Connection) -> PendingStatements | None:
    """Return the pending statements of a writer's transaction; None on SQLite, and on a read-only connection."""
    found: PendingStatements | None = connection.info.get(_LINE)
    return found


def run_text(connection: Connection, text: str, values: Any = ()) -> Any:
    """Run a text in the driver's parameter style and return its cursor. Raise as SQLAlchemy does.

    Queued statements are sent before it.
    """
    try:
        cursor = connection.connection.cursor()
        if not dialect_of(connection).is_server:  # nothing is queued there, and the lookup costs as much as a statement
            cursor.execute(text, values)
            return cursor
        told = line_of(connection)
        with _together(connection, told):
            cursor.execute(text, values)
    except Exception as error:
        raise as_sqlalchemy(connection, error) from error
    if told is not None:
        told.heard = True
    return cursor


def run_each(connection: Connection, text: str, rows: Sequence[Any]) -> None:
    """Run a text for each row in one call of the driver; on a server it is queued."""
    told = line_of(connection)
    if told is not None:
        told.later += [(text, values) for values in rows]
        return
    try:
        cursor = connection.connection.cursor()
        cursor.executemany(text, rows)
        cursor.close()
    except Exception as error:
        raise as_sqlalchemy(connection, error) from error


def run_later(connection: Connection, text: str, values: Any) -> None:
    """Run a text without a result: on a server it is sent with the next statement or the commit."""
    told = line_of(connection)
    if told is None:
        run_text(connection, text, values).close()
    else:
        told.later.append((text, values))


def say(connection: Connection) -> None:
    """Send the queued statements and wait for their success. Raise as SQLAlchemy does."""
    told = line_of(connection)
    if told is None or not told.later:
        return
    try:
        with _together(connection, told):
            pass
    except Exception as error:
        raise as_sqlalchemy(connection, error) from error
    told.heard = True


def say_and_commit(connection: Connection) -> None:
    """Send the queued statements together with COMMIT; SQLAlchemy's own commit then has nothing left to do."""
    run_text(connection, "COMMIT").close()


@contextlib.contextmanager
def _together(connection: Connection, told: PendingStatements | None) -> Iterator[None]:
    """Send the queued statements and an implicit BEGIN in one pipeline with the block's statement.

    The result of the block's cursor is available at the end of the block.
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
