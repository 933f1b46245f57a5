"""Watching approvals: every change once, on whichever replica it was made, from a place that can be gone back to.

Each stream reads its own way through the changes in the database, so one that is slow costs no memory and loses
nothing. One task for each tenant that is watched records what time has ended, gives changes their places, and tells the
streams that there is something to read.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import InvalidArgument, ResourceExhausted, Violation
from phylactery_chassis.rpc.paging import decode_token, encode_token
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.clock import MICROSECONDS
from sqlalchemy.engine import Connection

from phylactery_riskgate.approvals.model import Approval
from phylactery_riskgate.approvals.requests import WatchInput
from phylactery_riskgate.approvals.service import Answers
from phylactery_riskgate.approvals.validity import sees_all
from phylactery_riskgate.decisions.context import ApprovalSeen, Core
from phylactery_riskgate.store import approvals as rows
from phylactery_riskgate.store.approvals import Wanted

MAX_WATCHES = 32
"""Streams one identity may have open in one process."""
LOOK_SECONDS = 0.2
"""How long a change made elsewhere waits, at most, before it is seen."""
KEEP_DAYS = 7
"""How long a change can be gone back to; after that a stream begins with a snapshot."""
_PAGE = 50
_KIND = "approvals"
_CLOCK = "riskgate"
"""The subject of what nobody did but time."""

_log = get_logger("watching")


@dataclass(frozen=True, slots=True)
class Watched:
    """One message of a stream: an approval and where to go on after it, or the end of the snapshot."""

    seen: ApprovalSeen | None
    resume_token: str = ""

    @property
    def snapshot_end(self) -> bool:
        """Return whether the snapshot is complete."""
        return self.seen is None


class _Tenant:
    """What the streams of one tenant share: the last place that was given, and the news of it."""

    def __init__(self, look: Callable[[], Awaitable[int]]) -> None:
        self.latest = -1
        self.streams = 0
        self._look = look
        self._failure: Exception | None = None
        self._ended = False
        self._news = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    @property
    def usable(self) -> bool:
        """Return whether another stream can join."""
        return not self._task.done() and not self._ended

    async def beyond(self, position: int) -> bool:
        """Wait until there is something behind a place; False once everything ends. Raise what the store raised."""
        while self.latest <= position and not self._ended and self._failure is None:
            await self._news.wait()
        if self._failure is not None:
            raise self._failure
        return not self._ended

    async def end(self) -> None:
        """End every stream of the tenant."""
        self._ended = True
        self._tell()
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    def leave(self) -> None:
        """End the task without waiting for it: nobody watches any more."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while True:
                latest = await self._look()
                if latest > self.latest:
                    self.latest = latest
                    self._tell()
                await asyncio.sleep(LOOK_SECONDS)
        except Exception as error:  # noqa: BLE001 - every stream raises it, and one that waits must hear of it
            _log.warning("approvals cannot be watched", error=type(error).__name__)
            self._failure = error
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class Watches:
    """The use case; see the module."""

    def __init__(self, core: Core, answers: Answers) -> None:
        self._core, self._answers = core, answers
        self._tenants: dict[str, _Tenant] = {}
        self._open: Counter[tuple[str, str, str]] = Counter()
        self._closed = False

    async def watch(self, who: Principal, asked: WatchInput) -> AsyncGenerator[Watched]:
        """Yield the snapshot where it is asked for, then every change, until RiskGate stops.

        Raise InvalidArgument INVALID_REQUEST for a foreign resume_token, ResourceExhausted TOO_MANY_WATCHES,
        Unavailable STORE_UNAVAILABLE.
        """
        resumed = _position_of(asked.resume_token) if asked.resume_token else None
        with self._joined(who) as tenant:
            if tenant is None or not await tenant.beyond(-1):
                return
            position = tenant.latest if resumed is None else resumed
            if position > tenant.latest:
                raise _unusable_token()
            wanted = Wanted(
                who.tenant,
                "" if sees_all(who) else who.subject,
                asked.state,
                asked.thread_id,
                asked.approval_id,
            )
            shown: dict[str, int] = {}
            if asked.snapshot:
                async for at, seen in self._snapshot(who, wanted):
                    if not 0 < at <= position:
                        shown[seen.approval.id] = seen.approval.version
                    yield Watched(seen)
                yield Watched(None, encode_token(_KIND, position))
            async for watched in self._changes(who, wanted, tenant, position, shown):
                yield watched

    async def close(self) -> None:
        """End every stream, so that a server that stops need not wait for them."""
        self._closed = True
        tenants, self._tenants = list(self._tenants.values()), {}
        for tenant in tenants:
            await tenant.end()

    async def prune(self) -> int:
        """Drop changes from before the days that are kept, and say how many. Raise Unavailable STORE_UNAVAILABLE.

        What nobody watched gets its place first: a token from before it must not seem to miss nothing.
        """
        core, dropped = self._core, 0
        before_us = core.clock.now_us() - KEEP_DAYS * 86_400 * MICROSECONDS
        for tenant in await core.database.read(functools.partial(rows.find_old, before_us=before_us)):
            while await core.write(functools.partial(rows.place_changes, tenant=tenant)):
                pass
            while some := await core.write(functools.partial(rows.prune, tenant=tenant, before_us=before_us)):
                dropped += some
        return dropped

    async def _changes(
        self, who: Principal, wanted: Wanted, tenant: _Tenant, position: int, shown: dict[str, int]
    ) -> AsyncGenerator[Watched]:
        """Yield the changes behind a place, but those that the snapshot showed: ``shown`` holds their versions."""
        while await tenant.beyond(position):
            latest = tenant.latest
            found = await self._core.database.read(
                functools.partial(self._page, who=who, wanted=wanted, after=position)
            )
            for at, seen in found:
                position = at
                approval = seen.approval
                if approval.version > shown.get(approval.id, 0):
                    yield Watched(seen, encode_token(_KIND, at))
                elif approval.version == shown[approval.id]:
                    del shown[approval.id]
            if len(found) < _PAGE:
                position = max(position, latest)

    async def _snapshot(self, who: Principal, wanted: Wanted) -> AsyncIterator[tuple[int, ApprovalSeen]]:
        """Yield what is open, each with the place of its last change."""
        after = (-1, "")
        while True:
            page = await self._core.database.read(
                functools.partial(self._open_page, who=who, wanted=wanted, after=after)
            )
            for one in page:
                yield one
            if len(page) < _PAGE:
                return
            last = page[-1][1].approval
            after = (last.create_us, last.id)

    def _open_page(
        self, connection: Connection, who: Principal, wanted: Wanted, after: tuple[int, str]
    ) -> list[tuple[int, ApprovalSeen]]:
        found = rows.open_approvals(connection, wanted, after, _PAGE)
        return [(one.position, self._listed(connection, one.approval, who)) for one in found]

    def _page(
        self, connection: Connection, who: Principal, wanted: Wanted, after: int
    ) -> list[tuple[int, ApprovalSeen]]:
        if after + 1 < rows.first_position(connection, wanted.tenant):
            raise _unusable_token(f"is older than the changes of {KEEP_DAYS} days that are kept")
        found = rows.changes_after(connection, wanted, after, _PAGE)
        return [(one.position, self._listed(connection, one.approval, who)) for one in found]

    def _listed(self, connection: Connection, approval: Approval, who: Principal) -> ApprovalSeen:
        return self._core.seen(connection, self._core.votes.checked(approval), who, listed=True)

    @contextlib.contextmanager
    def _joined(self, who: Principal) -> Iterator[_Tenant | None]:
        """Count a stream in and out; the last of a tenant takes its task along. None once RiskGate stops."""
        identity = (who.tenant, who.subject, who.actor)
        if self._open[identity] >= MAX_WATCHES:
            raise ResourceExhausted(
                "TOO_MANY_WATCHES",
                f"this identity watches {MAX_WATCHES} times already; end one of those streams first",
                metadata={"limit": str(MAX_WATCHES)},
            )
        if self._closed:
            yield None
            return
        tenant = self._tenants.get(who.tenant)
        if tenant is None or not tenant.usable:
            tenant = self._tenants[who.tenant] = _Tenant(functools.partial(self._look, who.tenant))
        self._open[identity] += 1
        tenant.streams += 1
        try:
            yield tenant
        finally:
            tenant.streams -= 1
            self._open[identity] -= 1
            if not self._open[identity]:
                del self._open[identity]
            if not tenant.streams:
                tenant.leave()
                if self._tenants.get(who.tenant) is tenant:
                    del self._tenants[who.tenant]

    async def _look(self, tenant: str) -> int:
        """Record what time has ended, give changes their places, and return the last place."""
        await self._answers.expire_due(Principal(_CLOCK, tenant, frozenset()))
        if await self._core.database.read(lambda connection: rows.unplaced(connection, tenant)):
            await self._core.write(lambda connection: rows.place_changes(connection, tenant))
        return await self._core.database.read(lambda connection: rows.last_position(connection, tenant))


def _position_of(token: str) -> int:
    try:
        kind, position = decode_token(token, str, int)
    except InvalidArgument:
        raise _unusable_token() from None
    if kind != _KIND or not isinstance(position, int) or position < 0:
        raise _unusable_token()
    return position


def _unusable_token(why: str = "was not answered by this RiskGate") -> InvalidArgument:
    return InvalidArgument(
        "INVALID_REQUEST",
        f"resume_token {why}; watch without it, with snapshot",
        violations=[Violation("resume_token", why)],
    )
