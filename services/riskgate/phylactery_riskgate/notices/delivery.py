"""Delivery of notices: one loop for each sink, so that a slow or dead one holds up no other, and no decision."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import DomainError
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS, pause
from phylactery_chassis.util.crashpoints import reach
from sqlalchemy.engine import Connection

from phylactery_riskgate.decisions.context import DecisionContext
from phylactery_riskgate.notices import metrics
from phylactery_riskgate.notices.config import HttpEntry, RetryEntry, Sink
from phylactery_riskgate.notices.facts import told_of
from phylactery_riskgate.notices.model import Event, NoticeRow, NoticeState
from phylactery_riskgate.notices.sending import Line, SinkError, mail, post
from phylactery_riskgate.notices.wording import Told, mail_of, post_of
from phylactery_riskgate.store import notices as rows

LOOK_SECONDS: Final = 1.0
"""The longest delay until what another replica noted, or what is due now, is found."""
_LEASE_SECONDS: Final = 30.0
"""How long a claim lasts beyond the time that a delivery may take."""
_LONGEST_REST_SECONDS: Final = 60.0
_HOUR_SECONDS: Final = 3_600
_CLOCK: Final = "riskgate"
"""The subject of expiry, which no person causes."""

_log = get_logger("notices")


class _Result(NamedTuple):
    """How a try ended: without an error the sink took it."""

    error: SinkError | None = None


def send(sink: Sink, told: Told, now_us: int, line: Line) -> None:
    """Send one notice over a line. Raise SinkError."""
    if not isinstance(sink.entry, HttpEntry):
        mail(line, sink, mail_of(told, sink))
        return
    try:
        url = sink.url
        made = post_of(told, sink, url, now_us)
    except ValueError as error:  # a file that holds no secret, or no URL, any more
        raise SinkError("SECRET_UNUSABLE", str(error)) from None
    post(line, sink, url, made)


def line_for(sink: Sink) -> Line:
    """Return the line of one delivery to a sink."""
    return Line(sink.entry.timeout_seconds, private=sink.entry.allow_private)


class Deliveries:
    """The delivery loops of one process."""

    def __init__(self, core: DecisionContext) -> None:
        """Take the parts; the sinks are those of the outbox."""
        self._core, self._sinks = core, core.notices.notices.sinks
        self._holder = f"{socket.gethostname()}:{os.getpid()}"[-128:]
        self._tasks: list[asyncio.Task[None]] = []
        self._lines: dict[str, Line] = {}
        self._wake: dict[str, asyncio.Event] = {}
        self._threads: ThreadPoolExecutor | None = None
        self._unobserve: Callable[[], None] = lambda: None

    async def start(self) -> None:
        """Free the claims of processes of this machine that have ended, and start one loop for each sink."""
        if not self._sinks:
            return
        await self._core.write(self._begin)
        self._threads = ThreadPoolExecutor(len(self._sinks), thread_name_prefix="notices")
        self._wake = {sink.name: asyncio.Event() for sink in self._sinks}
        loop = asyncio.get_running_loop()

        def news() -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and nothing waits on it
                loop.call_soon_threadsafe(self._news)

        self._core.notices.listeners.append(news)
        self._tasks = [asyncio.create_task(self._serve(sink)) for sink in self._sinks]
        self._unobserve = metrics.observe([one.name for one in self._sinks], self._observed)

    async def stop(self) -> None:
        """End the loops; what is under way is cut off, and sent again later."""
        if self._threads is None:
            return
        self._unobserve()
        for task in self._tasks:
            task.cancel()
        for line in list(self._lines.values()):
            line.cut()
        for task in self._tasks:
            with contextlib.suppress(asyncio.CancelledError):
                await task
        self._threads.shutdown(wait=False, cancel_futures=True)
        self._threads = None

    def _begin(self, connection: Connection) -> None:
        gone = [one for one in rows.holders(connection) if self._has_ended(one)]
        rows.free_claims(connection, gone)
        for sink in self._sinks:
            rows.begin_sink(connection, sink.name, sink.fingerprint)

    def _has_ended(self, holder: str) -> bool:
        """Return True if a process of this machine is not there any more, or was one with this process's number."""
        host, _, number = holder.rpartition(":")
        if holder == self._holder:
            return True
        if host != self._holder.rpartition(":")[0] or not number.isdigit():
            return False
        try:
            os.kill(int(number), 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

    def _news(self) -> None:
        for event in self._wake.values():
            event.set()

    def _observed(self) -> dict[str, tuple[rows.Counts, bool]]:
        try:
            counts = self._core.database.read_sync(partial(rows.counts_of, now_us=self._core.clock.now_us()))
            known = {one.name: one for one in self._core.database.read_sync(rows.sinks_of)}
        except DomainError:
            return {}
        disabled = {name for name, one in known.items() if one.disabled_us}
        return {one.name: (counts.get(one.name, rows.Counts()), one.name in disabled) for one in self._sinks}

    async def _serve(self, sink: Sink) -> None:
        wake, fails = self._wake[sink.name], 0
        while True:
            wake.clear()
            rest, found = LOOK_SECONDS, None
            try:
                found = await self._next(sink)
            except DomainError as error:
                _log.warning("notices are not sent now; they stay", sink=sink.name, reason=error.reason)
            except Exception as error:  # noqa: BLE001 - a fault of one notice must not end its sink's loop
                _log.error("a notice could not be sent; it stays", sink=sink.name, error=type(error).__name__)
            if found is None:
                await pause(wake, rest)
            elif found.error is None:
                fails = 0
            else:  # other notices would fail as well, so they are not tried at once
                fails += 1
                doubled = sink.entry.retry.first_seconds * 2 ** min(fails - 1, 20)
                await asyncio.sleep(min(doubled, _LONGEST_REST_SECONDS))

    async def _next(self, sink: Sink) -> _Result | None:
        """Send the next due notice of a sink; return None if there is none."""
        now_us = self._core.clock.now_us()
        if not await self._core.database.read(partial(_wanted, sink=sink.name, now_us=now_us)):
            return None
        until_us = now_us + round((sink.entry.timeout_seconds + _LEASE_SECONDS) * MICROSECONDS)
        claim = partial(rows.claim, sink=sink.name, by=self._holder, now_us=now_us, until_us=until_us)
        row = await self._core.write(claim)
        if row is None:
            return None
        reach("riskgate.notice.claimed")
        if now_us - row.due_us > sink.entry.retry.give_up_hours * _HOUR_SECONDS * MICROSECONDS:
            return await self._give_up(sink, row)
        if row.event == Event.EXPIRED:
            await self._core.write(partial(self._expire, row=row))
        link = self._core.notices.notices.link
        told = await self._core.database.read(partial(told_of, core=self._core, sink=sink, link=link, row=row))
        if told is None:
            await self._core.write(partial(rows.end, row=row, state=NoticeState.DROPPED, now_us=now_us))
            return _Result()
        return await self._settled(sink, row, await self._send(sink, told))

    async def _send(self, sink: Sink, told: Told) -> SinkError | None:
        assert self._threads is not None, "the loops run while there are threads"
        line = self._lines[sink.name] = line_for(sink)
        work = partial(send, sink, told, self._core.clock.now_us(), line)
        try:
            await asyncio.get_running_loop().run_in_executor(self._threads, work)
        except SinkError as error:
            return error
        finally:
            self._lines.pop(sink.name, None)
        reach("riskgate.notice.sent")
        return None

    async def _settled(self, sink: Sink, row: NoticeRow, error: SinkError | None) -> _Result:
        """Record how a try ended."""
        now_us = self._core.clock.now_us()
        if error is None:
            await self._core.write(partial(self._taken, row=row, now_us=now_us))
            metrics.sent(sink.name, row.event, now_us - row.due_us)
            return _Result()
        metrics.failed(sink.name, error.code)
        next_us = now_us + round(_pause_seconds(sink.entry.retry, row.tries, error) * MICROSECONDS)
        await self._core.write(partial(self._refused, row=row, now_us=now_us, next_us=next_us, error=error))
        tell = _log.error if error.gone else _log.warning
        tell("a notice was not taken", sink=sink.name, notice_id=row.id, error_code=error.code, tries=row.tries)
        return _Result(error)

    async def _give_up(self, sink: Sink, row: NoticeRow) -> _Result:
        now_us = self._core.clock.now_us()
        ended = partial(rows.end, row=row, state=NoticeState.FAILED, now_us=now_us, error=row.error or "TOO_LATE")
        if await self._core.write(ended):
            metrics.given_up(sink.name)
            about = {"sink": sink.name, "notice_id": row.id, "tries": row.tries - 1}
            _log.error("a notice is given up", error_code=row.error, **about)
        return _Result()

    @staticmethod
    def _taken(connection: Connection, row: NoticeRow, now_us: int) -> None:
        rows.lock_sink(connection, row.sink)
        rows.end(connection, row, NoticeState.SENT, now_us)
        rows.note_taken(connection, row.sink, now_us)

    @staticmethod
    def _refused(connection: Connection, row: NoticeRow, now_us: int, next_us: int, error: SinkError) -> None:
        rows.lock_sink(connection, row.sink)
        rows.postpone(connection, row, next_us, error.code)
        rows.note_failed(connection, row.sink, now_us, error.code, error.told, gone=error.gone)

    def _expire(self, connection: Connection, row: NoticeRow) -> None:
        """Record that an approval's time is over, which nobody may have looked at since."""
        approval = self._core.find_approval(connection, row.tenant, row.about, lock=True)
        if approval is not None:
            who = Principal(_CLOCK, row.tenant, frozenset())
            self._core.current(connection, approval, who, self._core.clock.now_us())


def _wanted(connection: Connection, sink: str, now_us: int) -> bool:
    """Return True if a sink is enabled and a notice for it may be due."""
    known = rows.find_sink(connection, sink)
    return not (known and known.disabled_us) and rows.anything_due(connection, sink, now_us)


def _pause_seconds(retry: RetryEntry, tries: int, error: SinkError) -> float:
    """Return how long to wait before the next try, with jitter, so that sinks do not get all at once."""
    doubled: float = min(retry.first_seconds * 2 ** min(tries - 1, 30), retry.longest_seconds)
    return max(error.retry_after, doubled * random.uniform(0.8, 1.2))  # noqa: S311 - jitter
