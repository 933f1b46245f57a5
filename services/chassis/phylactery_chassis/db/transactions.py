"""How transactions begin: SQLite's settings, and the connection its writer keeps."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.db.pending_statements import line, line_of, run_text, say, say_and_commit

_BUSY_MS = 5_000
LOG_PAGES = 4_000
"""How long the log grows (16 MB) before its pages go to their places, each once, however often it was written."""
_PRIMARY = 0xFF
"""What of SQLite's extended error codes names the error itself."""


def set_up_sqlite(engine: Engine, log_pages: int) -> None:
    """Make SQLite durable and its transactions ours: WAL, synchronous=FULL, BEGIN IMMEDIATE for writers.

    ``log_pages`` is how long the log grows, in pages of 4 KiB, before they go to their places.
    """

    @sa.event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver must not open transactions of its own
        cursor = connection.cursor()
        for pragma in (
            f"busy_timeout={_BUSY_MS}",
            "journal_mode=WAL",
            "synchronous=FULL",
            "foreign_keys=ON",
            "secure_delete=ON",
            f"wal_autocheckpoint={log_pages}",
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        mode = "IMMEDIATE" if connection.get_execution_options().get("phylactery_write") else "DEFERRED"
        try:
            run_text(connection, f"BEGIN {mode}").close()
        except sa.exc.DBAPIError as error:
            if getattr(error.orig, "sqlite_errorcode", 0) & _PRIMARY == sqlite3.SQLITE_BUSY:
                raise
            connection.exec_driver_sql(f"BEGIN {mode}")  # so that whoever listens for faults hears of it


class StaleError(Exception):
    """The connection was broken before the transaction had begun at the server: nothing of it was done there.

    It holds what the driver raised as its cause. The same may be tried once more on a new connection.
    """


def heed_the_line(engine: Engine) -> None:
    """Have statements that SQLAlchemy runs for a writer come after what was to be said before them."""

    @sa.event.listens_for(engine, "before_cursor_execute")
    def _before(connection: Connection, *_statement: Any) -> None:
        say(connection)

    @sa.event.listens_for(engine, "after_cursor_execute")
    def _after(connection: Connection, *_statement: Any) -> None:
        told = line_of(connection)
        if told is not None:
            told.heard = True


class Transactions:
    """The transactions of one thread, one after the other.

    The connection is kept from one to the next: to take it from the pool, and to give it back, costs more than a write
    to a file does. Whether a server still holds its end shows when something is said: see StaleError.
    """

    def __init__(self, engine: Engine) -> None:
        """Take the engine; nothing is opened yet."""
        self._engine = engine
        self._kept: Connection | None = None
        self._pool: sa.Pool | None = None

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Begin a transaction, and end it with the block as Engine.begin does.

        Raise StaleError where a server's connection was lost before the server answered anything in it.
        """
        try:
            connection = self._connection()
            if connection.dialect.name == "sqlite":
                with connection.begin():
                    yield connection
                return
            with connection.begin(), line(connection) as told:
                try:
                    yield connection
                    if not told.heard:
                        say(connection)  # before the commit, whose lost answer would say nothing of it
                except sa.exc.DBAPIError as error:
                    if error.connection_invalidated and not told.heard:
                        raise StaleError from error
                    raise
                if told.later:
                    say_and_commit(connection)
        except BaseException:
            self.end()
            raise

    def end(self) -> None:
        """Give the connection back, however it is."""
        kept, self._kept, self._pool = self._kept, None, None
        if kept is not None:
            kept.close()

    def _connection(self) -> Connection:
        pool = self._engine.pool
        if self._kept is None or pool is not self._pool:  # whoever disposes of an engine wants all of them anew
            self.end()
            self._kept, self._pool = self._engine.connect(), pool
        return self._kept
