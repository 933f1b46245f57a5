"""Notices between processes that share a PostgreSQL database: LISTEN and NOTIFY, outside all transactions.

A notice says that something changed and carries no data: the change was committed before. Notices can be lost when a
connection breaks or a process dies, so listeners must also poll.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

import sqlalchemy as sa

from phylactery_chassis.telemetry.logs import get_logger

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_MAX_PAYLOAD: Final = 7_000
"""Maximum size of one notification in bytes; PostgreSQL accepts less than 8,000."""
_MAX_WAITING: Final = 10_000
"""Maximum number of queued notices while the database is unavailable; listeners poll anyway."""

_log = get_logger("notices")


class Notices:
    """Sends notices to the other processes and receives theirs, but not its own."""

    def __init__(self, url: str, channel: str, *, origin: str) -> None:
        """``url`` is a PostgreSQL database; no connection is opened yet.

        ``origin`` is this process's own name, without blanks.
        """
        address = sa.make_url(url)
        self._options = dict(address.get_dialect()().create_connect_args(address)[1])
        self._channel, self._origin = channel, origin
        self._waiting: dict[str, None] = {}
        self._sending = False
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, notice: str) -> None:
        """Queue a notice, a line of at most 1,000 bytes, for sending; one already queued is sent once."""
        if len(self._waiting) < _MAX_WAITING:
            self._waiting[notice] = None
            self._news.set()

    def start(self, *, heard: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Begin to listen and to send.

        ``heard`` is called with every notice of another process, ``missed`` whenever some may have been lost; both on
        the event loop.
        """
        listen = partial(self._listen, heard, missed)
        self._tasks = [asyncio.create_task(self._again(listen)), asyncio.create_task(self._again(self._send))]

    async def stop(self) -> None:
        """Send what is queued if possible at once, then stop."""
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_PAUSE_SECONDS):
                    while self._waiting or self._sending:  # noqa: ASYNC110 - the sender has no event for completion
                        await asyncio.sleep(_FIRST_PAUSE_SECONDS / 10)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again(self, work: Callable[[], Any]) -> None:
        """Run work in a loop with growing pauses, because the database may be unavailable."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - whatever failed, the next connection may work
                _log.info("notification listener lost its connection; reconnecting", error=type(error).__name__)
            if asyncio.get_running_loop().time() - begun > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _connect(self) -> Any:
        import psycopg  # late: the driver is only installed where PostgreSQL is used

        return await psycopg.AsyncConnection.connect(**self._options, autocommit=True)

    async def _listen(self, heard: Callable[[str], None], missed: Callable[[], None]) -> None:
        from psycopg import sql

        async with await self._connect() as connection:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            missed()
            async for told in connection.notifies():
                origin, _, lines = told.payload.partition("\n")
                if origin != self._origin:
                    for line in lines.splitlines():
                        heard(line)

    async def _send(self) -> None:
        async with await self._connect() as connection:
            await connection.execute("SET synchronous_commit = off")  # a lost notice is found by polling
            while True:
                await self._news.wait()
                self._news.clear()
                taken, self._waiting, self._sending = self._waiting, {}, True
                try:
                    for payload in self._payloads(list(taken)):
                        await connection.execute("SELECT pg_notify(%s, %s)", (self._channel, payload))
                except BaseException:
                    self._waiting = taken | self._waiting
                    self._news.set()
                    raise
                finally:
                    self._sending = False

    def _payloads(self, notices: list[str]) -> Iterator[str]:
        """Yield the notices packed into as few notifications as possible."""
        lines, size = [self._origin], len(self._origin)
        for notice in notices:
            if size + len(notice.encode()) + 1 > _MAX_PAYLOAD:
                yield "\n".join(lines)
                lines, size = [self._origin], len(self._origin)
            lines.append(notice)
            size += len(notice.encode()) + 1
        if len(lines) > 1:
            yield "\n".join(lines)
