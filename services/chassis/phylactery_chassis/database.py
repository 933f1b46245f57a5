"""One database per service: SQLite by default, PostgreSQL by URL, and one ordered writer thread with group commit.

Every write is a function of a connection. The writer takes whatever waits, runs each function in a savepoint of one
transaction, commits, and only then answers: an answer means durable. Reads run beside it in a small pool.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.errors import StartError, Unavailable
from phylactery_chassis.logs import get_logger
from phylactery_chassis.migrations import upgrade

T = TypeVar("T")
Work = Callable[[Connection], T]

_MAX_GROUP = 256
_READERS = 4
_BUSY_MS = 5_000

_log = get_logger("database")


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Work[T]
    future: Future[T]


def _why(error: sa.exc.SQLAlchemyError) -> str:
    """Answers the driver's own first line; the statement and its values stay out of it."""
    text = str(getattr(error, "orig", None) or type(error).__name__).strip()
    return text.splitlines()[0] if text else type(error).__name__


def _set_up_sqlite(engine: Engine) -> None:
    """Makes SQLite durable and its transactions ours: WAL, synchronous=FULL, BEGIN IMMEDIATE for writers."""

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
        ):
            cursor.execute(f"PRAGMA {pragma}")
        cursor.close()

    @sa.event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        mode = "IMMEDIATE" if connection.get_execution_options().get("phylactery_write") else "DEFERRED"
        connection.exec_driver_sql(f"BEGIN {mode}")


class Database:
    """A service's database. Every failure of the store itself is Unavailable STORE_UNAVAILABLE."""

    def __init__(self, url: str) -> None:
        """Opens the database; url is sqlite:///… or postgresql+psycopg://…."""
        self._engine = sa.create_engine(
            url,
            pool_size=_READERS + 1,
            max_overflow=0,
            pool_pre_ping="sqlite" not in url,
            hide_parameters=True,  # an error text never holds a value
        )
        self.dialect = self._engine.dialect.name
        if self.dialect == "sqlite":
            _set_up_sqlite(self._engine)
        self._write_engine = self._engine.execution_options(phylactery_write=True)
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="database-reader")
        self._closed = False
        self._failing = False
        self._gate = threading.Lock()
        self._writer = threading.Thread(target=self._write_loop, name="database-writer", daemon=True)
        self._writer.start()

    @property
    def engine(self) -> Engine:
        """Gives maintenance commands and tests the engine below."""
        return self._engine

    @property
    def healthy(self) -> bool:
        """Says whether the writer lives and its last commit worked."""
        return self._writer.is_alive() and not self._closed and not self._failing

    def migrate(self, package: str, *, apply: bool = True) -> None:
        """Brings the schema to the newest revision of <package>.migrations; see migrations.upgrade.

        Raises SchemaError, and StartError when the database itself cannot be used.
        """
        try:
            upgrade(self._write_engine, package, apply=apply)
        except sa.exc.SQLAlchemyError as error:
            prefix = package.removeprefix("phylactery_").upper()
            raise StartError(f"{self._place} cannot be the database ({_why(error)}); {self._advice(prefix)}") from None

    @property
    def _place(self) -> str:
        """Answers where the data lies, without a password."""
        url = self._engine.url
        return url.database or ":memory:" if self.dialect == "sqlite" else url.render_as_string(hide_password=True)

    def _advice(self, prefix: str) -> str:
        if self.dialect == "sqlite":
            return (
                "restore a backup of this file, or move it away to start empty, "
                f"or name another place in {prefix}_DATA_DIR or {prefix}_DATABASE_URL"
            )
        return f"check that the server runs and that {prefix}_DATABASE_URL names a user who may create tables"

    async def write(self, work: Work[T]) -> T:
        """Runs work in the writer and answers once it is durable. What work raises rolls back that work alone."""
        return await asyncio.wrap_future(self._submit(work))

    def write_sync(self, work: Work[T]) -> T:
        """Does the same from a thread."""
        return self._submit(work).result()

    async def read(self, work: Work[T]) -> T:
        """Runs work on a reader connection, beside the writer; after close() it is Unavailable."""
        if self._closed:
            raise self._unavailable("the database is closed")
        return await asyncio.get_running_loop().run_in_executor(self._readers, self._read, work)

    def read_sync(self, work: Work[T]) -> T:
        """Does the same from a thread."""
        return self._read(work)

    async def probe(self) -> bool:
        """Says whether a write works right now, so that health can recover by itself."""
        try:
            await self.write(lambda connection: connection.execute(sa.text("SELECT 1")).scalar())
        except Unavailable:
            return False
        return self.healthy

    def close(self) -> None:
        """Finishes what was submitted, then closes; a later write is Unavailable."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            self._jobs.put(None)
        self._writer.join()
        self._readers.shutdown()
        self._engine.dispose()

    def _submit(self, work: Work[T]) -> Future[T]:
        job: _Job[T] = _Job(work, Future())
        with self._gate:
            if self._closed or not self._writer.is_alive():
                raise self._unavailable("the writer has stopped")
            self._jobs.put(job)
        return job.future

    def _read(self, work: Work[T]) -> T:
        try:
            with self._engine.begin() as connection:
                return work(connection)
        except sa.exc.SQLAlchemyError as error:
            raise self._store_error(error) from error

    def _write_loop(self) -> None:
        while (first := self._jobs.get()) is not None:
            group, last = [first], False
            while len(group) < _MAX_GROUP and not self._jobs.empty():
                job = self._jobs.get()
                if job is None:
                    last = True
                    break
                group.append(job)
            self._run_group([job for job in group if job.future.set_running_or_notify_cancel()])
            if last:
                return

    def _run_group(self, group: list[_Job[Any]]) -> None:
        """Runs jobs in one transaction; a failed commit fails every one of them, for none is durable."""
        outcomes: list[tuple[_Job[Any], Any, BaseException | None]] = []
        try:
            with self._write_engine.begin() as connection:
                outcomes = [self._run_job(connection, job) for job in group]
            self._failing = False
        except BaseException as error:  # noqa: BLE001 - the writer must outlive any fault and tell every waiter
            self._failing = True
            _log.error("commit failed", error=type(error).__name__, jobs=len(group))
            failure = self._store_error(error)
            outcomes = [(job, None, failure) for job in group]
        for job, result, fault in outcomes:
            if fault is None:
                job.future.set_result(result)
            else:
                job.future.set_exception(fault)

    def _run_job(self, connection: Connection, job: _Job[Any]) -> tuple[_Job[Any], Any, BaseException | None]:
        try:
            with connection.begin_nested():
                return job, job.work(connection), None
        except (sa.exc.OperationalError, sa.exc.InternalError, sa.exc.DisconnectionError):
            raise  # the store itself fails, so the whole group is in question
        except Exception as error:  # noqa: BLE001 - the work's own error, a taken key included, belongs to its waiter
            return job, None, error

    def _store_error(self, error: BaseException) -> BaseException:
        if isinstance(error, sa.exc.SQLAlchemyError):
            return self._unavailable(type(error).__name__)
        return error

    def _unavailable(self, why: str) -> Unavailable:
        return Unavailable(
            "STORE_UNAVAILABLE", f"the database did not take it ({why}), so nothing changed; try again in a moment"
        )
