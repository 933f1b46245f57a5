"""Watches of approvals: each change is delivered once, from any replica, with a position to resume from.

Each stream reads through the changes in the database at its own pace, so a slow one costs no memory and loses nothing.
One task per watched tenant records expiry, assigns positions to changes, and wakes the streams.
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
from phylactery_riskgate.approvals.service import ApprovalService
from phylactery_riskgate.approvals.validity import sees_all
from phylactery_riskgate.decisions.context import ApprovalSeen, DecisionContext
from phylactery_riskgate.store import approvals as rows
from phylactery_riskgate.store.approvals import Wanted

MAX_WATCHES = 32
"""Maximum number of streams per identity and process."""
LOOK_SECONDS = 0.2
"""Polling interval: the maximum delay until a change made elsewhere is seen."""
KEEP_DAYS = 7
"""How long a change can be resumed from; after that a stream begins with a snapshot."""
_PAGE = 50
_KIND = "approvals"
_CLOCK = "riskgate"
"""The subject of expiry, which no person causes."""

_log = get_logger("watching")


@dataclass(frozen=True, slots=True)
class Watched:
    """One message of a stream: an approval and its resume token, or the end of the snapshot."""

    seen: ApprovalSeen | None
    resume_token: str = ""

    @property
    def snapshot_end(self) -> bool:
        """Return True if this message ends the snapshot."""
        return self.seen is None


class _Tenant:
    """State shared by the streams of one tenant: the last assigned position and its notifications."""

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
        """Return True if another stream can join."""
        return not self._task.done() and not self._ended

    async def beyond(self, position: int) -> bool:
        """Wait until there is a change after a position; return False at shutdown. Raise what the store raised."""
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
        """Cancel the task without waiting for it, because no stream is left."""
        self._task.cancel()

    async def _run(self) -> None:
        try:
            while True:
                latest = await self._look()
                if latest > self.latest:
                    self.latest = latest
                    self._tell()
                await asyncio.sleep(LOOK_SECONDS)
        except Exception as error:  # noqa: BLE001 - every stream raises it, including waiting ones
            _log.warning("approvals cannot be watched", error=type(error).__name__)
            self._failure = error
            self._tell()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class Watches:
    """The Watch use case."""

    def __init__(self, core: DecisionContext, answers: ApprovalService) -> None:
        self._core, self._answers = core, answers
        self._tenants: dict[str, _Tenant] = {}
        self._open: Counter[tuple[str, str, str]] = Counter()
        self._closed = False

    async def watch(self, who: Principal, asked: WatchInput) -> AsyncGenerator[Watched]:
        """Yield the snapshot if requested, then every change, until RiskGate stops.

        Raise InvalidArgument INVALID_REQUEST for a foreign resume_token, ResourceExhausted TOO_MANY_WATCHES, and
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
        """End every stream, so that a stopping server need not wait for them."""
        self._closed = True
        tenants, self._tenants = list(self._tenants.values()), {}
        for tenant in tenants:
            await tenant.end()

    async def prune(self) -> int:
        """Drop changes older than KEEP_DAYS, and return how many. Raise Unavailable STORE_UNAVAILABLE.

        Changes without a position get one first: otherwise an older token would appear to have missed nothing.
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
        """Yield the changes after a position, except those of the snapshot, whose versions are in ``shown``."""
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
        """Yield open approvals, each with the position of its last change."""
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
        """Register a stream for the block; the last one of a tenant ends its task. Yield None during shutdown."""
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
        """Record expiry, assign positions to changes, and return the last position."""
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
