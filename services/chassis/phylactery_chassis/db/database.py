"""A service's database: SQLite by default, PostgreSQL by URL, with one ordered writer thread and group commit.

Every write is a function of a connection. The writer takes all waiting functions, runs each so that it can be rolled
back alone, commits them in one transaction, and only then resolves the callers: a result means durable. The writes of
one event loop iteration are batched and share a transaction; if most calls write, a database may also wait for calls
that are about to write. After a lost race the functions run again, so they must have no effect outside the database.
Reads run concurrently on a small pool.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any, Final, TypeVar

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from phylactery_chassis.db.dialect import LOG_PAGES, dialect_of
from phylactery_chassis.db.errors import comes_back, faults_told, unavailable, why
from phylactery_chassis.db.groups import Groups
from phylactery_chassis.db.jobs import Job, JobQueue, Outcome, Together, Waiting, Work, tell_all
from phylactery_chassis.db.migrations import upgrade
from phylactery_chassis.db.pending_statements import run_text
from phylactery_chassis.db.transactions import Transactions, flush_before_commit
from phylactery_chassis.db.unit import unit_of
from phylactery_chassis.errors import DomainError, StartError
from phylactery_chassis.telemetry.logs import get_logger


def look(connection: Connection) -> None:
    """Run a statement without effect, to check that the store responds."""
    run_text(connection, "SELECT 1").close()


T = TypeVar("T")

START_WAIT_SECONDS: Final = 30.0
"""How long a start waits for its server: less than whoever starts services waits for their health."""
_START_PAUSE_SECONDS = 0.25
_READERS = 4
_COMPANY_SECONDS = 0.002
"""How long a batch waits for the next expected write: about the duration of one commit."""
_QUIET_SECONDS = 0.001
"""How long it waits for one write more than expected, whose call may just be arriving."""
_LONGEST_SECONDS = 0.02
"""The longest total wait of a batch, however many writes keep arriving."""

_log = get_logger("database")


def _protect(connection: Connection, *_statement: Any) -> None:
    unit = unit_of(connection)
    if unit is not None:
        unit.protect()


class Database:
    """A service's database.

    Every failure of the store is Unavailable STORE_UNAVAILABLE, or StoreFull if its disk is full.
    """

    def __init__(
        self,
        url: str,
        *,
        company: Callable[[], int] | None = None,
        log_pages: int = LOG_PAGES,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        """Open the database; url is sqlite:///… or postgresql+psycopg://….

        ``company`` returns the number of running calls that are about to write, the current one included. A write then
        waits for the others (as many as were in the previous batch) and for the writer's current transaction, to share
        one commit. It waits at most two milliseconds for each; a single write after a batch waits once. ``log_pages``
        is how many pages SQLite's log grows to before a checkpoint. While it grows, each sync also writes its length; a
        longer log moves frequently written pages less often. ``options`` are execution options of every connection, by
        which a store finds what belongs to the database, such as the key of its sealed columns.
        """
        self._company = company
        self._engine = sa.create_engine(
            url,
            pool_size=_READERS + 2,  # the writer, and read_quickly
            max_overflow=0,
            hide_parameters=True,  # an error text never contains a value
            execution_options=dict(options or {}),
        )
        self.dialect = dialect_of(self._engine)
        self.dialect.set_up(self._engine, log_pages)
        self._read_engine = self.dialect.reading(self._engine)
        self._write_engine = self._engine.execution_options(phylactery_write=True)
        self._single_engine = self._engine.execution_options(isolation_level="AUTOCOMMIT")
        sa.event.listen(self._write_engine, "before_cursor_execute", _protect)
        if self.dialect.is_server:
            flush_before_commit(self._write_engine)
        self._groups = Groups(self._write_engine, failed=self._note_failure)
        self._jobs = JobQueue(short=self.dialect.is_server)
        self._waiting: dict[asyncio.AbstractEventLoop, Waiting] = {}
        self._readers = ThreadPoolExecutor(_READERS, thread_name_prefix="database-reader")
        self._quick, self._one_quick_read = Transactions(self._read_engine), threading.Lock()
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="database-beside")
        self._closed = False
        self._failures = 0
        self._mended = 0
        """The failure count before the last successful probe; failures during the probe itself still count."""
        self._gate = threading.Lock()
        self._writer = threading.Thread(target=self._write_loop, name="database-writer", daemon=True)
        self._writer.start()

    @property
    def engine(self) -> Engine:
        """The SQLAlchemy engine, for maintenance commands and tests."""
        return self._engine

    @property
    def healthy(self) -> bool:
        """True if the writer is alive and its last commit worked."""
        return self._writer.is_alive() and not self._closed and self._failures == self._mended

    def migrate(self, package: str, *, apply: bool = True, wait_seconds: float = START_WAIT_SECONDS) -> None:
        """Migrate the schema to the newest revision of <package>.migrations; see migrations.upgrade.

        A server that is not up yet, recovers, or has no connection left is waited for, wait_seconds at most. Raise
        SchemaError, or StartError if the database itself cannot be used.
        """
        place = self.dialect.place(self._engine.url)
        old = self.dialect.old_driver(self._engine)
        if old:
            raise StartError(
                f"{place} cannot be the database: psycopg runs on libpq {old} here, and statements that go "
                "together need 14 or later; install psycopg[binary], which brings its own, or a newer libpq"
            )
        until, told = time.monotonic() + wait_seconds, ""
        while (error := self._upgrade(package, apply=apply)) is not None:
            waits, reason = self.dialect.is_server and comes_back(error), why(error)
            if not waits or time.monotonic() + _START_PAUSE_SECONDS > until:
                advice = self.dialect.advice(package.removeprefix("phylactery_").upper())
                tried = f" after {wait_seconds:g} seconds" if waits and wait_seconds else ""
                raise StartError(f"{place} cannot be the database{tried} ({reason}); {advice}")
            if reason != told:
                told = reason
                _log.warning("waiting for the database", database=place, reason=reason, seconds=wait_seconds)
            time.sleep(_START_PAUSE_SECONDS)

    def _upgrade(self, package: str, *, apply: bool) -> sa.exc.SQLAlchemyError | None:
        """Migrate the schema, and return how the database failed, None if it did not. Raise SchemaError."""
        try:
            upgrade(self._write_engine, package, apply=apply)
        except sa.exc.SQLAlchemyError as error:
            return error
        return None

    def migrate_at_start(self, package: str) -> None:
        """Migrate a file as migrate does; on a server, whose schema other processes use, only compare."""
        self.migrate(package, apply=not self.dialect.is_server)

    async def write(self, work: Work[T]) -> T:
        """Run work in the writer and return once it is durable. An exception of work rolls back that work alone."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[T] = loop.create_future()
        self._wait(loop, [Job(work, waiter, loop)])
        return await waiter

    async def write_all(self, works: Sequence[Work[T]]) -> list[T | BaseException]:
        """Run several works as write does, each rolled back alone, and return the results once all are durable.

        In place of the result of a failed work is its exception. They are submitted together and wake the caller once,
        which costs a tenth of as many writes.
        """
        if not works:
            return []
        loop = asyncio.get_running_loop()
        together: Together[T] = Together(loop, len(works))
        self._wait(loop, [Job(work, share, loop) for work, share in zip(works, together.waiters(), strict=True)])
        return await together.ended

    def _wait(self, loop: asyncio.AbstractEventLoop, jobs: list[Job[T]]) -> None:
        """Hold jobs until the end of this loop iteration, or submit at once if no other call could write in it."""
        with self._gate:
            self._check_open()
            waiting = self._waiting.setdefault(loop, Waiting())
            waiting.jobs += jobs
        if waiting.looking:
            return
        if self._company is not None and not waiting.writing and self._expected(waiting) <= 1:
            self._hand_over(waiting)
        else:
            waiting.looking = True
            loop.call_soon(self._look, loop, waiting)

    def _expected(self, waiting: Waiting) -> int:
        """Return how many writes of a loop to expect: one per running call, or the size of the previous batch."""
        return max(self._company() if self._company else 0, waiting.usual)

    def write_sync(self, work: Work[T]) -> T:
        """Run work as write does, from a thread."""
        waiter: Future[T] = Future()
        with self._gate:
            self._check_open()
            self._jobs.put([Job(work, waiter)])
        return waiter.result()

    async def write_beside(self, work: Work[T]) -> T:
        """Run work outside the writer, with autocommit on a server, so that it does not wait for other writes.

        It is for a single statement with a deadline, such as a lease renewal. SQLite has one writer, so there it is an
        ordinary write.
        """
        if not self.dialect.is_server:
            return await self.write(work)
        if self._closed:
            raise unavailable("the database is closed")
        return await asyncio.get_running_loop().run_in_executor(self._beside, self._ask_one, work)

    async def read(self, work: Work[T], *, one: bool = False) -> T:
        """Run work on a reader connection, concurrently with the writer; after close() it is Unavailable.

        With ``one`` the work is a single statement, which a server runs outside a transaction; two statements might see
        two snapshots.
        """
        if self._closed:
            raise unavailable("the database is closed")
        ask = self._ask_one if one else self._read
        return await asyncio.get_running_loop().run_in_executor(self._readers, ask, work)

    async def read_quickly(self, work: Work[T], *, one: bool = False) -> T:
        """Read a few rows by key. On SQLite this runs in the calling thread, which is faster than a thread switch.

        Its connection is kept between calls, because the pool would take longer than the rows. The work must return
        rows: an unread result would hold the log. Raise TypeError for one.
        """
        if self.dialect.is_server:
            return await self.read(work, one=one)
        with self._one_quick_read, faults_told():
            if self._closed:
                raise unavailable("the database is closed")
            with self._quick.begin() as connection:
                answer = work(connection)
                if isinstance(answer, sa.Result):
                    answer.close()
                    raise TypeError("work of read_quickly answers rows, not the result they are read from")
                return answer

    def read_sync(self, work: Work[T]) -> T:
        """Read from a thread."""
        return self._read(work)

    async def probe(self) -> bool:
        """Return True if the store accepts writes, so that health can recover by itself.

        If the last commit worked, only read. After a failed one, write something: a transaction that writes nothing
        would succeed on a full disk too.
        """
        failures = self._failures
        try:
            await self.write(look if failures == self._mended else self.dialect.write_something)
        except DomainError:
            return False
        self._mended = max(failures, self._mended)
        return self.healthy

    def close(self) -> None:
        """Finish the submitted work, then close; a later write is Unavailable."""
        with self._gate:
            if self._closed:
                return
            self._closed = True
            for waiting in self._waiting.values():
                self._jobs.put(waiting.jobs)
                waiting.jobs = []
            self._jobs.end()
        self._writer.join()
        self._readers.shutdown()
        self._beside.shutdown()
        with self._one_quick_read:
            self._quick.end()
        self._engine.dispose()

    def _check_open(self) -> None:
        if self._closed or not self._writer.is_alive():
            raise unavailable("the writer has stopped")

    def _look(self, loop: asyncio.AbstractEventLoop, waiting: Waiting) -> None:
        """Submit the batch of one loop iteration, or wait for more writers."""
        waiting.looking = False
        if self._company is None:
            self._hand_over(waiting)
            return
        if waiting.writing:
            return
        here, expected = len(waiting.jobs), self._expected(waiting)
        if expected <= 1:
            self._hand_over(waiting)
            return
        now = loop.time()
        if waiting.timer is None:
            waiting.latest = now + _LONGEST_SECONDS
        else:
            waiting.timer.cancel()
        patience = _COMPANY_SECONDS if here < expected else _QUIET_SECONDS
        waiting.timer = loop.call_at(min(now + patience, waiting.latest), self._hand_over, waiting)

    def _hand_over(self, waiting: Waiting) -> None:
        """Submit the batch to the writer; close() may have done so already."""
        with self._gate:
            jobs = waiting.take()
            if jobs:
                waiting.writing, waiting.usual = True, len(jobs)
                self._jobs.put(jobs)

    def _tell_all(self, group: list[Job[Any]], outcomes: list[Outcome]) -> None:
        """Resolve all waiters, cancelled ones included, waking each event loop once."""
        by_loop: dict[asyncio.AbstractEventLoop | None, list[Outcome]] = {job.loop: [] for job in group}
        for outcome in outcomes:
            by_loop[outcome.job.loop].append(outcome)
        for loop, some in by_loop.items():
            if loop is None:
                tell_all(some)
                continue
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nothing waits on it
                loop.call_soon_threadsafe(self._tell_loop, loop, some)

    def _tell_loop(self, loop: asyncio.AbstractEventLoop, outcomes: list[Outcome]) -> None:
        """Resolve a loop's waiters, and submit what was batched meanwhile."""
        waiting = self._waiting[loop]
        waiting.writing = False
        if waiting.jobs:
            self._look(loop, waiting)
        tell_all(outcomes)

    def _note_failure(self) -> None:
        self._failures += 1

    def _read(self, work: Work[T]) -> T:
        return self._ask(self._read_engine.begin, work)

    def _ask_one(self, work: Work[T]) -> T:
        return self._ask(self._single_engine.connect, work)

    def _ask(self, connect: Callable[[], AbstractContextManager[Connection]], work: Work[T]) -> T:
        """Run repeatable work; retry once on a new connection if the server had closed the old one."""
        with faults_told():
            try:
                with connect() as connection:
                    return work(connection)
            except sa.exc.DBAPIError as error:
                if not error.connection_invalidated:
                    raise
            self._engine.dispose()  # the other pooled connections are as old
            with connect() as connection:
                return work(connection)

    def _write_loop(self) -> None:
        try:
            self._write_all()
        finally:
            self._groups.end()

    def _write_all(self) -> None:
        for group in self._jobs.groups():
            self._tell_all(group, self._groups.run([job for job in group if job.wanted()]))
