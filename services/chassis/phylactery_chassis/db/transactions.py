"""How transactions begin and end, and the connection that the writer keeps."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.db.dialect import dialect_of
from phylactery_chassis.db.pending_statements import line, line_of, say, say_and_commit


class StaleError(Exception):
    """The connection was broken before the server processed any of the transaction: nothing was done there.

    The driver's error is its cause. The transaction may be retried once on a new connection.
    """


def flush_before_commit(engine: Engine) -> None:
    """Flush pending statements before each statement that SQLAlchemy runs for a writer."""

    @sa.event.listens_for(engine, "before_cursor_execute")
    def _before(connection: Connection, *_statement: Any) -> None:
        say(connection)

    @sa.event.listens_for(engine, "after_cursor_execute")
    def _after(connection: Connection, *_statement: Any) -> None:
        told = line_of(connection)
        if told is not None:
            told.heard = True


class Transactions:
    """The transactions of one thread, one at a time.

    The connection is kept between them: taking it from the pool and returning it costs more than a write to a file.
    Whether the server closed it is found out at the next statement: see StaleError.
    """

    def __init__(self, engine: Engine) -> None:
        """``engine`` provides the connection; nothing is opened yet."""
        self._engine = engine
        self._kept: Connection | None = None
        self._pool: sa.Pool | None = None

    @contextlib.contextmanager
    def begin(self) -> Iterator[Connection]:
        """Begin a transaction and end it with the block, as Engine.begin does.

        Raise StaleError if the connection was lost before the server answered any statement of the transaction.
        """
        try:
            connection = self._connection()
            if not dialect_of(connection).is_server:
                with connection.begin():
                    yield connection
                return
            with connection.begin(), line(connection) as told:
                try:
                    yield connection
                    if not told.heard:
                        say(connection)  # a lost response to COMMIT would hide its outcome
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
        """Return the connection to the pool, whatever its state."""
        kept, self._kept, self._pool = self._kept, None, None
        if kept is not None:
            kept.close()

    def _connection(self) -> Connection:
        pool = self._engine.pool
        if self._kept is None or pool is not self._pool:  # disposing of an engine replaces all its connections
            self.end()
            self._kept, self._pool = self._engine.connect(), pool
        return self._kept
