"""Following the logs: every entry of a tenant once, those of other processes too, in the order of each log.

A log has no gaps: an entry is durable only together with all before it. So an index for each log says everything about
how far a follower is, and what one process has sent another can go on with.
"""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from typing import TYPE_CHECKING, Any

from phylactery_chassis.auth.identity import Principal, Role
from phylactery_chassis.errors import STORE_FAILED, ResourceExhausted
from phylactery_chassis.telemetry.logs import get_logger

from phylactery_riskgate.core import Core
from phylactery_riskgate.entry_filter import EntryFilter
from phylactery_riskgate.requests.audit import TailInput
from phylactery_riskgate.store import audit_search as rows

if TYPE_CHECKING:
    from phylactery_riskgate.auditing import SeenEntry

MAX_TAILS = 16
"""Tails one tenant may have open in one process, so that no tenant keeps another's auditors out."""
_POLL_SECONDS = 0.1
_CHUNK = 500
"""Entries read at once: what a slow follower makes the server hold."""
_CHUNK_WITH_VALUES = 16
"""The same with their values, which may be a megabyte each."""
_QUIET = 5_000
"""Entries that did not fit, after which a follower is told how far the tail is."""

Positions = dict[str, int]
Seen = Callable[..., "SeenEntry"]
_log = get_logger("audit")


class Tails:
    """Every follower of this process. One look at the sizes of the logs serves all of them."""

    def __init__(self, core: Core, seen: Seen) -> None:
        self._core, self._seen = core, seen
        self._grown = asyncio.Condition()
        self._sizes: Positions = {}
        self._followers: Counter[str] = Counter()
        self._watch: asyncio.Task[None] | None = None
        self._ending = False

    async def follow(self, who: Principal, asked: TailInput) -> AsyncGenerator[SeenEntry | Positions]:
        """Yields positions first, then entries as they come, and positions where many did not fit.

        Ends, after last positions, where the server drains. Raises ResourceExhausted TOO_MANY_TAILS.
        """
        who.require(Role.AUDITOR)
        wanted = EntryFilter(who.tenant, asked.filter)
        with self._following(who.tenant):
            sizes = await self._look()
            at = {one.log: one.next_index for one in asked.positions}
            if not asked.positions:
                at = dict.fromkeys(sizes, 0) if asked.from_beginning else dict(sizes)
            yield dict(at)
            told = sum(at.values())
            while True:
                sizes = self._sizes
                behind = [log for log, size in sizes.items() if at.get(log, 0) < size]
                if behind:
                    async for entry in self._chunk(wanted, at, behind, sizes, values=asked.include_values):
                        yield entry
                        told = sum(at.values())
                    if sum(at.values()) - told >= _QUIET:
                        told = sum(at.values())
                        yield dict(at)
                elif self._ending:
                    yield dict(at)
                    return
                else:
                    await self._growth(sizes)

    async def end(self) -> None:
        """Lets every follower finish with what is there."""
        if self._followers:
            with contextlib.suppress(*STORE_FAILED):  # then they end with what they know of
                await self._look()
        self._ending = True
        async with self._grown:
            self._grown.notify_all()

    async def _chunk(
        self, wanted: EntryFilter, at: Positions, behind: list[str], sizes: Positions, *, values: bool
    ) -> AsyncIterator[SeenEntry]:
        """Yields the next entries of the logs, those that are there merged by time, and moves the positions."""
        step = max(1, (_CHUNK_WITH_VALUES if values else _CHUNK) // len(behind))
        ends = {log: min(sizes[log], at.get(log, 0) + step) for log in behind}

        def read(connection: Any) -> list[SeenEntry]:
            found = [
                rows.following(connection, wanted.tenant, log, at.get(log, 0), end)
                for log, end in ends.items()
                if wanted.bounds.log in ("", log)
            ]
            merged = heapq.merge(*found, key=lambda one: one.position)
            entries = (wanted.read(one) for one in merged)
            return [self._seen(connection, entry, values=values) for entry in entries if entry is not None]

        for seen in await self._core.database.read(read):
            place = seen.entry.found.place
            at[place.log] = place.index + 1
            yield seen
        at.update(ends)

    @contextlib.contextmanager
    def _following(self, tenant: str) -> Iterator[None]:
        if self._followers[tenant] >= MAX_TAILS:
            raise ResourceExhausted(
                "TOO_MANY_TAILS",
                f"{MAX_TAILS} tails of this tenant are open at this server already; end one, or ask another replica",
                metadata={"limit": str(MAX_TAILS)},
            )
        self._followers[tenant] += 1
        if self._watch is None:
            self._watch = asyncio.create_task(self._keep_looking())
        try:
            yield
        finally:
            self._followers[tenant] -= 1
            if not self._followers[tenant]:
                del self._followers[tenant]
            if not self._followers and self._watch is not None:
                self._watch.cancel()
                self._watch = None

    async def _look(self) -> Positions:
        """Looks at the sizes of the logs, and wakes who waits for them to grow."""
        sizes = {log.name: log.size for log in await self._core.database.read(rows.log_sizes)}
        if sizes != self._sizes:
            self._sizes = sizes
            async with self._grown:
                self._grown.notify_all()
        return sizes

    async def _keep_looking(self) -> None:
        """Looks at the logs while anybody follows; a store that fails is asked again."""
        while True:
            await asyncio.sleep(_POLL_SECONDS)
            try:
                await self._look()
            except STORE_FAILED as error:
                _log.warning("the logs could not be followed for a moment", reason=error.reason)

    async def _growth(self, known: Positions) -> None:
        """Waits until a log has grown, or the server drains."""
        async with self._grown:
            await self._grown.wait_for(lambda: self._ending or self._sizes is not known)
