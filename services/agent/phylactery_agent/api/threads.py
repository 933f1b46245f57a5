"""The thread half of ChatService: thread state, live events, and deletion."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Annotated, Final

from phylactery.agent.v1 import chat_pb2
from phylactery_chassis.auth.identity import Principal
from phylactery_chassis.errors import OutOfRange, ResourceExhausted
from phylactery_chassis.rpc.validation import EdgeModel, Identifier
from phylactery_chassis.util.clock import pause
from phylactery_chassis.util.timestamps import to_timestamp
from pydantic import Field, StringConstraints

from phylactery_agent.api.mapping import ShownRun, listed_run, owner_of, run_message
from phylactery_agent.api.showing import PendingApproval, Showing, ShownEvent, approval_message
from phylactery_agent.runtime.dispatch.notifier import ThreadNotifier
from phylactery_agent.runtime.privacy.delete_thread import Deletions
from phylactery_agent.runtime.runs.queries import ListedThread, ThreadStore, no_thread
from phylactery_agent.runtime.runs.store import RunStore
from phylactery_agent.runtime.storage.events import EventLog
from phylactery_agent.runtime.storage.records import Owner, Page, StoredThread, ThreadTail

MAX_WATCHES: Final = 100
"""Maximum number of threads one user may watch at once through one agent."""
DEFAULT_LISTED: Final = 20
_LOOK_SECONDS: Final = 10.0
"""Polling interval of a watch, because notifications from another process may be lost."""


class ThreadRequest(EdgeModel):
    """GetThread."""

    thread_id: Identifier


class WatchRequest(EdgeModel):
    """WatchThread."""

    thread_id: Identifier
    after_sequence: Annotated[int, Field(ge=0)]


class ThreadsRequest(EdgeModel):
    """ListThreads."""

    page_size: Annotated[int, Field(ge=0, le=100)]
    page_token: Annotated[str, StringConstraints(max_length=1_000)]


@dataclass(frozen=True, slots=True)
class ShownThread:
    """A thread, its newest run, and its pending cards, the newest first."""

    thread: StoredThread
    run: ShownRun | None
    pending: Sequence[PendingApproval] = ()


@dataclass(eq=False)
class ThreadEdge:
    """The implementation of ChatService's thread methods, without gRPC."""

    threads: ThreadStore
    runs: RunStore
    log: EventLog
    news: ThreadNotifier
    showing: Showing
    deletions: Deletions
    _open: Counter[Owner] = field(default_factory=Counter, init=False)
    _ending: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _deleting: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def get(self, principal: Principal, thread_id: str) -> ShownThread:
        """Return a thread's state. Raise NotFound THREAD_NOT_FOUND."""
        owner = owner_of(principal)
        thread = await self.threads.get(owner, thread_id)
        run = await self.runs.standing(owner, thread_id)
        if run is None:
            return ShownThread(thread, None)
        shown = ShownRun(run, await self.runs.tool_calls(run.run_id))
        return ShownThread(thread, shown, await self.showing.all_pending(owner, thread_id))

    async def list(self, principal: Principal, request: ThreadsRequest) -> Page[ListedThread]:
        """Return a page of the caller's threads. Raise InvalidArgument."""
        size = request.page_size or DEFAULT_LISTED
        return await self.threads.page(owner_of(principal), size=size, token=request.page_token)

    async def watch(self, principal: Principal, request: WatchRequest) -> AsyncGenerator[ShownEvent]:
        """Yield a thread's events after a sequence, then each as it is stored, until the agent stops.

        Only one page is held at a time, however slow the reader. Raise NotFound THREAD_NOT_FOUND, OutOfRange
        CURSOR_TOO_OLD and CURSOR_AHEAD, ResourceExhausted TOO_MANY_WATCHES.
        """
        owner = owner_of(principal)
        key, sequence, opened_us = owner.thread_key(request.thread_id), request.after_sequence, 0
        with self._counted(owner), self.news.listen(key) as news:
            while not self._ending.is_set():
                news.clear()
                tail = await self.log.of_thread(key, after=sequence)
                if tail is None or opened_us not in (0, tail.opened_us):
                    raise no_thread(request.thread_id)
                opened_us = tail.opened_us
                _check(request.thread_id, sequence, tail)
                for event in tail.events:
                    yield await self.showing.event(owner, event)
                    sequence = event.sequence
                if not tail.events and not self._ending.is_set():
                    await pause(news, _LOOK_SECONDS)

    async def delete(self, principal: Principal, thread_id: str) -> None:
        """Remove a thread; a missing one is not an error. The deletion continues if the caller disconnects.

        Raise Unavailable STORE_UNAVAILABLE.
        """
        task = asyncio.create_task(self.deletions.delete(owner_of(principal), thread_id))
        self._deleting.add(task)
        task.add_done_callback(self._deleting.discard)
        await asyncio.shield(task)

    async def end(self) -> None:
        """End every watch, so that a stopping server need not wait for them."""
        self._ending.set()
        self.news.tell_all_here()

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


def too_old(thread_id: str, first_sequence: int) -> OutOfRange:
    """Return the error for a request for events that are no longer stored."""
    return OutOfRange(
        "CURSOR_TOO_OLD",
        f"the events of thread '{thread_id}' before {first_sequence} are not kept any more; GetThread answers where it "
        f"stands, and its events go on after {first_sequence - 1}",
        metadata={"first_sequence": str(first_sequence)},
    )


def listed_thread(listed: ListedThread) -> chat_pb2.Thread:
    """Return a thread in list form."""
    thread = _thread(listed.thread)
    if listed.run is not None:
        thread.last_run.CopyFrom(listed_run(listed.run))
    return thread


def thread_message(shown: ShownThread) -> chat_pb2.Thread:
    """Return a thread."""
    thread = _thread(shown.thread)
    if shown.run is not None:
        thread.last_run.CopyFrom(run_message(shown.run))
    thread.pending_approvals.extend(approval_message(card) for card in shown.pending)
    if thread.pending_approvals:
        thread.pending_approval.CopyFrom(thread.pending_approvals[0])
    return thread


def _thread(stored: StoredThread) -> chat_pb2.Thread:
    return chat_pb2.Thread(
        id=stored.thread_id,
        create_time=to_timestamp(stored.created_us),
        update_time=to_timestamp(stored.updated_us),
        first_sequence=stored.first_sequence,
        last_sequence=stored.last_sequence,
        graph=stored.graph,
    )
