"""The differences between the stores: SQLite in a file, and PostgreSQL on a server.

Other code asks the dialect of its connection and never compares the name of a store. What SQLAlchemy compiles for both
(FOR UPDATE, SKIP LOCKED, ON CONFLICT, RETURNING) is irrelevant here: SQLite has one writer and omits the locks.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from typing import Any, ClassVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, ExceptionContext

from phylactery_chassis.db.errors import as_sqlalchemy, is_busy
from phylactery_chassis.errors import Unavailable
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS
from phylactery_chassis.util.crypto import make_private

LOG_PAGES = 4_000
"""How many pages the write-ahead log grows to (16 MB) before a checkpoint, which writes each changed page once."""

_BUSY_MS = 5_000
_FAILED_SYNC = frozenset({sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE})

# built once: building a statement costs several times what the database takes to run it
_NUMBER = sa.bindparam("number", type_=sa.BigInteger)
_LOCK = sa.select(sa.func.pg_advisory_xact_lock(_NUMBER))
_TRY_LOCK = sa.select(sa.func.pg_try_advisory_xact_lock(_NUMBER))
_TRY_SHARED = sa.select(sa.func.pg_try_advisory_xact_lock_shared(_NUMBER))
_SERVER_US = sa.cast(sa.extract("epoch", sa.func.clock_timestamp()) * MICROSECONDS, sa.BigInteger)

_log = get_logger("database")


def make_database_private(place: str) -> None:
    """Create SQLite's file, if it is missing, and let its owner alone read it and its log, if they are ours.

    A file that exists is not opened here: closing it would end the locks that this process has on it (fcntl). What
    cannot be done is left to SQLite, whose error says why.
    """
    if place.startswith((":memory:", "file:")) or not place:
        return
    with contextlib.suppress(OSError):
        os.close(os.open(place, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    for path in (place, f"{place}-wal", f"{place}-shm"):
        with contextlib.suppress(OSError):
            make_private(path)


class Dialect:
    """SQLite, and what holds for every store unless its own dialect overrides it."""

    is_server: ClassVar[bool] = False
    """Whether several processes may serve the database. Then each statement is a round trip, the server's clock is the
    one they share, and the schema is migrated by command, so that no replica changes one that others use.
    """
    mark: ClassVar[str] = "?"
    """A parameter in a text for the driver."""

    def set_up(self, engine: Engine, log_pages: int) -> None:
        """Configure an engine's connections for durable, explicit transactions, and refuse writes after a failed sync.

        SQLite gets WAL and synchronous=FULL; ``log_pages`` is how many pages of 4 KiB its log grows to before a
        checkpoint. A transaction is a writer's if it has the execution option phylactery_write: BEGIN IMMEDIATE. Nobody
        but the owner may read the file, nor its log, which gets the file's mode from SQLite.
        """

        @sa.event.listens_for(engine, "do_connect")
        def _protect(_dialect: Any, _record: Any, arguments: list[Any], _options: Any) -> None:
            make_database_private(str(arguments[0]))

        @sa.event.listens_for(engine, "connect")
        def _connect(connection: Any, _record: Any) -> None:
            connection.isolation_level = None  # the driver must not open transactions itself
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

        failed: list[int] = []

        @sa.event.listens_for(engine, "handle_error")
        def _note(context: ExceptionContext) -> None:
            code = getattr(context.original_exception, "sqlite_errorcode", 0)
            if code in _FAILED_SYNC and not failed:
                failed.append(code)
                _log.error("a sync failed; nothing is written until the service is restarted", sqlite_code=code)

        @sa.event.listens_for(engine, "begin")
        def _begin(connection: Connection) -> None:
            write = connection.get_execution_options().get("phylactery_write")
            begin = f"BEGIN {'IMMEDIATE' if write else 'DEFERRED'}"
            try:
                cursor = connection.connection.cursor()
                cursor.execute(begin)
                cursor.close()
            except Exception as error:
                if is_busy(error):
                    raise as_sqlalchemy(connection, error) from error
                connection.exec_driver_sql(begin)  # through SQLAlchemy, so that its error listeners see failures
            if failed and write:
                raise Unavailable(
                    "STORE_UNAVAILABLE",
                    "a write could not be synced to disk, so writes stopped; check the disk, then restart the service",
                )

    def reading(self, engine: Engine) -> Engine:
        """Return the engine on which the statements of a read see one snapshot: a row and its key, or neither."""
        return engine

    def old_driver(self, engine: Engine) -> str:  # noqa: ARG002 - Python brings the driver
        """Return the version of a libpq that is too old to send statements together, or '' if it is not."""
        return ""

    def place(self, url: sa.URL) -> str:
        """Return the location of the data, without a password."""
        return url.database or ":memory:"

    def advice(self, prefix: str) -> str:
        """Return what to do if the database cannot be used; the service's variables begin with the prefix."""
        return (
            "restore a backup of this file, or move it away to start empty, "
            f"or name another place in {prefix}_DATA_DIR or {prefix}_DATABASE_URL"
        )

    def write_something(self, connection: Connection) -> None:
        """Write without changing data: rewrite a number in SQLite's file header, or force a transaction id on a server.

        A transaction that writes nothing would succeed on a full disk too.
        """
        number = connection.exec_driver_sql("PRAGMA user_version").scalar_one()
        connection.exec_driver_sql(f"PRAGMA user_version = {number}").close()

    def now_us(self, own: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
        """Return the time that all processes judge by, in microseconds; ``own`` is by this process's clock."""
        return own

    def lock(self, connection: Connection, number: int) -> None:
        """Lock a number until the commit, once it is free."""

    def try_lock(self, connection: Connection, number: int, *, shared: bool = False) -> bool:  # noqa: ARG002 - one writer
        """Lock a number until the commit unless another transaction's lock excludes it; return True on success."""
        return True


class PostgreSql(Dialect):
    """A server."""

    is_server = True
    mark = "%s"

    def set_up(self, engine: Engine, log_pages: int) -> None:
        """Leave durability to the server's own settings."""

    def reading(self, engine: Engine) -> Engine:
        """Return the engine with a snapshot per transaction; by default each statement has one."""
        return engine.execution_options(isolation_level="REPEATABLE READ")

    def old_driver(self, engine: Engine) -> str:
        """Return the version of a libpq without pipeline mode."""
        driver: Any = engine.dialect.loaded_dbapi
        return "" if driver.Pipeline.is_supported() else str(driver.pq.version() // 10_000)

    def place(self, url: sa.URL) -> str:
        """Return the URL without its password."""
        return url.render_as_string(hide_password=True)

    def advice(self, prefix: str) -> str:
        """Name what a server needs."""
        return (
            f"check that the server runs and has a connection left, and that {prefix}_DATABASE_URL names its address, "
            "a database, and a user who may create tables"
        )

    def write_something(self, connection: Connection) -> None:
        """Force a transaction id."""
        connection.exec_driver_sql("SELECT txid_current()").close()

    def now_us(self, own: sa.ColumnElement[int]) -> sa.ColumnElement[int]:  # noqa: ARG002 - of several processes
        """Return the server's time: those of the processes may be hours apart."""
        return _SERVER_US

    def lock(self, connection: Connection, number: int) -> None:
        """Take an advisory lock."""
        connection.execute(_LOCK, {"number": number})

    def try_lock(self, connection: Connection, number: int, *, shared: bool = False) -> bool:
        """Try to take an advisory lock."""
        statement = _TRY_SHARED if shared else _TRY_LOCK
        return bool(connection.execute(statement, {"number": number}).scalar_one())


_DIALECTS: dict[str, Dialect] = {"sqlite": Dialect(), "postgresql": PostgreSql()}


def dialect_of(bound: Connection | Engine) -> Dialect:
    """Return the dialect of a connection or an engine."""
    return _DIALECTS[bound.dialect.name]


def dialect_named(name: str) -> Dialect:
    """Return the dialect that SQLAlchemy calls so. Raise KeyError."""
    return _DIALECTS[name]
