"""Thread edge: thread state, live events, and deletion."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import OutOfRange, ResourceExhausted
from phylactery_chassis.util.clock import pause

from phylactery_agent.api.chat import owner_of, too_old
from phylactery_agent.api.requests import ThreadsRequest, WatchRequest
from phylactery_agent.api.showing import Showing
from phylactery_agent.api.views import ShownEvent, ShownRun, ShownThread
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.privacy.delete_thread import Deletions
from phylactery_agent.runtime.runs.queries import ListedThread, ThreadStore, no_thread
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.records import Owner, Page, ThreadTail

MAX_WATCHES: Final = 100
"""Maximum number of threads one user may watch at once through one agent."""
DEFAULT_LISTED: Final = 20
_LOOK_SECONDS: Final = 10.0
"""Polling interval of a watch, because notifications from another process may be lost."""


@dataclass(frozen=True, slots=True)
class ThreadTools:
    """The dependencies of the edge."""

    threads: ThreadStore
    runs: RunStore
    log: EventLog
    news: ThreadNotifier
    showing: Showing
    deletions: Deletions


class ThreadEdge:
    """The implementation of ChatService's thread methods, without gRPC."""

    def __init__(self, tools: ThreadTools) -> None:
        self._t = tools
        self._open: Counter[Owner] = Counter()
        self._ending = asyncio.Event()
        self._deleting: set[asyncio.Task[None]] = set()

    async def get(self, principal: Principal, thread_id: str) -> ShownThread:
        """Return a thread's state. Raise NotFound THREAD_NOT_FOUND."""
        owner = owner_of(principal)
        thread = await self._t.threads.get(owner, thread_id)
        run = await self._t.runs.newest(owner, thread_id)
        if run is None:
            return ShownThread(thread, None)
        shown = ShownRun(run, await self._t.runs.tool_calls(run.run_id))
        return ShownThread(thread, shown, await self._t.showing.all_pending(owner, thread_id))

    async def list(self, principal: Principal, request: ThreadsRequest) -> Page[ListedThread]:
        """Return a page of the caller's threads. Raise InvalidArgument."""
        size = request.page_size or DEFAULT_LISTED
        return await self._t.threads.page(owner_of(principal), size=size, token=request.page_token)

    async def watch(self, principal: Principal, request: WatchRequest) -> AsyncGenerator[ShownEvent]:
        """Yield a thread's events after a sequence, then each as it is stored, until the agent stops.

        Only one page is held at a time, however slow the reader. Raise NotFound THREAD_NOT_FOUND, OutOfRange
        CURSOR_TOO_OLD and CURSOR_AHEAD, ResourceExhausted TOO_MANY_WATCHES.
        """
        owner = owner_of(principal)
        key, sequence, opened_us = owner.thread_key(request.thread_id), request.after_sequence, 0
        with self._counted(owner), self._t.news.listen(key) as news:
            while not self._ending.is_set():
                news.clear()
                tail = await self._t.log.of_thread(key, after=sequence)
                if tail is None or opened_us not in (0, tail.opened_us):
                    raise no_thread(request.thread_id)
                opened_us = tail.opened_us
                _check(request.thread_id, sequence, tail)
                for event in tail.events:
                    yield await self._t.showing.event(owner, event)
                    sequence = event.sequence
                if not tail.events and not self._ending.is_set():
                    await pause(news, _LOOK_SECONDS)

    async def delete(self, principal: Principal, thread_id: str) -> None:
        """Remove a thread; a missing one is not an error. The deletion continues if the caller disconnects.

        Raise Unavailable STORE_UNAVAILABLE.
        """
        task = asyncio.create_task(self._t.deletions.delete(owner_of(principal), thread_id))
        self._deleting.add(task)
        task.add_done_callback(self._deleting.discard)
        await asyncio.shield(task)

    async def end(self) -> None:
        """End every watch, so that a stopping server need not wait for them."""
        self._ending.set()
        self._t.news.tell_all_here()

    @contextmanager
    def _counted(self, owner: Owner) -> Iterator[None]:
        if self._open[owner] >= MAX_WATCHES:
            raise ResourceExhausted(
                "TOO_MANY_WATCHES",
                f"this user watches {MAX_WATCHES} times already; end one of those streams first",
                metadata={"limit": str(MAX_WATCHES)},
            )
        self._open[owner] += 1
        try:
            yield
        finally:
            self._open[owner] -= 1
            if not self._open[owner]:
                del self._open[owner]


def _check(thread_id: str, after: int, tail: ThreadTail) -> None:
    """Raise OutOfRange if the events after a sequence are no longer stored or do not exist yet."""
    if after + 1 < tail.first_sequence:
        raise too_old(thread_id, tail.first_sequence)
    if after > tail.last_sequence:
        raise OutOfRange(
            "CURSOR_AHEAD",
            f"the last event of thread '{thread_id}' is {tail.last_sequence}; it is not the thread this cursor is of, "
            "or an older copy of it: begin again with after_sequence 0",
            metadata={"last_sequence": str(tail.last_sequence)},
        )
