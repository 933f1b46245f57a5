"""Notices between the processes that share a PostgreSQL database: LISTEN and NOTIFY, beside all transactions.

A notice says that something is worth looking at, and holds no data: what it is about was committed before. Notices can
be lost, where a connection breaks or a process dies, so whoever listens looks now and then all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator
from typing import Any, Final

import sqlalchemy as sa

from phylactery_chassis.telemetry.logs import get_logger

_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 5.0
_MAX_PAYLOAD: Final = 7_000
"""Bytes of one notification; PostgreSQL takes less than 8,000."""
_MAX_WAITING: Final = 10_000
"""Notices kept while the database is away; with more of them everybody looks anyway."""

_log = get_logger("notices")


class Notices:
    """Sends notices to the other processes, and hears theirs but not its own."""

    def __init__(
        self, url: str, channel: str, *, origin: str, heard: Callable[[str], None], missed: Callable[[], None]
    ) -> None:
        """Take the URL of a PostgreSQL database and a channel's name; nothing is opened yet.

        origin is this process' own name, without blanks. heard is called with every notice of another process, missed
        whenever some may have been lost; both on the event loop.
        """
        address = sa.make_url(url)
        self._options = dict(address.get_dialect()().create_connect_args(address)[1])
        self._channel, self._origin, self._heard, self._missed = channel, origin, heard, missed
        self._waiting: dict[str, None] = {}
        self._sending = False
        self._news = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    def send(self, notice: str) -> None:
        """Send a notice, a line of at most 1,000 bytes, soon; one that waits already is sent once."""
        if len(self._waiting) < _MAX_WAITING:
            self._waiting[notice] = None
            self._news.set()

    def start(self) -> None:
        """Begin to listen and to send."""
        self._tasks = [asyncio.create_task(self._again(self._listen)), asyncio.create_task(self._again(self._send))]

    async def stop(self) -> None:
        """Send what waits, if that can be done at once, and ends."""
        if self._tasks:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_FIRST_PAUSE_SECONDS):
                    while self._waiting or self._sending:  # noqa: ASYNC110 - the sender tells nobody when it is through
                        await asyncio.sleep(_FIRST_PAUSE_SECONDS / 10)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again(self, work: Callable[[], Any]) -> None:
        """Do it again and again, with growing pauses, for the database may be away."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            begun = asyncio.get_running_loop().time()
            try:
                await work()
            except Exception as error:  # noqa: BLE001 - whatever failed, the next connection may stand
                _log.info("notices wait for the database", error=type(error).__name__)
            if asyncio.get_running_loop().time() - begun > _LONGEST_PAUSE_SECONDS:
                pause = _FIRST_PAUSE_SECONDS
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _connect(self) -> Any:
        import psycopg  # late: only where PostgreSQL is used is its driver there

        return await psycopg.AsyncConnection.connect(**self._options, autocommit=True)

    async def _listen(self) -> None:
        from psycopg import sql

        async with await self._connect() as connection:
            await connection.execute(sql.SQL("LISTEN {}").format(sql.Identifier(self._channel)))
            self._missed()
            async for told in connection.notifies():
                origin, _, lines = told.payload.partition("\n")
                if origin != self._origin:
                    for line in lines.splitlines():
                        self._heard(line)

    async def _send(self) -> None:
        async with await self._connect() as connection:
            await connection.execute("SET synchronous_commit = off")  # nothing is lost that is not looked for
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
        """Return the notices as few notifications."""
        lines, size = [self._origin], len(self._origin)
        for notice in notices:
            if size + len(notice.encode()) + 1 > _MAX_PAYLOAD:
                yield "\n".join(lines)
                lines, size = [self._origin], len(self._origin)
            lines.append(notice)
            size += len(notice.encode()) + 1
        if len(lines) > 1:
            yield "\n".join(lines)
