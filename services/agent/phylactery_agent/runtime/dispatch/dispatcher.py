"""The dispatcher: serves each thread's turns strictly in order, and different threads concurrently up to a limit."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Callable, Collection

from phylactery_chassis.errors import STORE_FAILED, CommitUnknown
from phylactery_chassis.telemetry.logs import get_logger
from phylactery_chassis.util.crashpoints import reach

from phylactery_agent.runtime.dispatch.claims import ClaimStore, HeldError
from phylactery_agent.runtime.dispatch.leases import hold_of
from phylactery_agent.runtime.dispatch.named_leases import NamedLeases
from phylactery_agent.runtime.intake.inbox import InboxStore
from phylactery_agent.runtime.storage.records import Claim, Incoming, StoredTurn
from phylactery_agent.runtime.turn.context_loader import Hydrating
from phylactery_agent.runtime.turn.server import ServeTurn

_LONGEST_PAUSE_SECONDS = 60.0
_UNSERVED_SECONDS = 0.05
"""Interval, in seconds, of the check whether another process has released a thread."""

Taking = asyncio.Task[tuple[StoredTurn, Claim | None]]
"""A message being accepted into the inbox, with the claim made in the same commit if it opens a run."""

_log = get_logger("runner")


class Dispatcher:
    """The dispatcher of the inbox's turns, for as long as the process lives.

    The process that accepts a message serves it if it has capacity. Over PostgreSQL other processes are notified of
    work beyond that capacity, and pick up what a dead process left.
    """

    def __init__(
        self,
        inbox: InboxStore,
        claims: ClaimStore,
        serve: ServeTurn,
        named_leases: NamedLeases,
        *,
        holder: str,
        max_concurrent: int,
        retry_seconds: float,
        shared: bool,
        hydrating: Hydrating | None = None,
        on_return: Callable[[Claim], None] = lambda _claim: None,
        on_overflow: Callable[[], None] = lambda: None,
        on_hold: Callable[[str], None] = lambda _thread_key: None,
    ) -> None:
        """Take the stores and limits; shared means that other processes may serve the same database.

        hydrating reads the context of a message whose thread can be served at once, while it is accepted. on_return is
        called with a claim that was given back: its turn may have ended in a commit whose outcome is unknown.
        on_overflow is called when there is work beyond this process's capacity, on_hold with a thread that this process
        has just held: other processes look for the one, and stop serving the other.
        """
        self.shared = shared
        self._hydrating, self._on_return = hydrating, on_return
        self._on_overflow, self._on_hold = on_overflow, on_hold
        self._inbox, self._claims, self._serve, self._named_leases = inbox, claims, serve, named_leases
        self._holder, self._retry_seconds = holder, retry_seconds
        self._slots = asyncio.Semaphore(max_concurrent)
        self._working: dict[str, asyncio.Task[None]] = {}
        self._pending: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._context = contextvars.copy_context()
        """The context at construction: a caller's deadline, identity and span must not leak into a turn."""
        self._stopped = False
        self._waited: set[str] = set()
        self._held: dict[str, set[str]] = {}
        """The holders of each thread: one that releases it must not release it for the others."""
        self._looking: asyncio.Task[None] | None = None
        self._look_again = False
        self._found = asyncio.Event()
        """Set while no search for work is in progress: a search may claim a thread that is woken meanwhile."""
        self._found.set()
        self._prefetched: dict[str, Claim] = {}
        """Claims found for threads that were woken meanwhile: the tasks of those threads serve them."""
        self._returning: set[asyncio.Task[None]] = set()
        """Tasks that give claims back. They are never cancelled, because the tasks that start them may be cancelled."""

    async def start(self) -> None:
        """Resume the turns that a dead predecessor left.

        Over SQLite all leases are freed. Over PostgreSQL the leases of holders proven dead were freed before this call;
        every other lease must run out first, because its holder may be alive.
        """
        if self.shared:
            self.look()
            return
        freed = await self._claims.release_all()
        threads = await self._inbox.threads_with_work()
        if freed or threads:
            _log.info("recovering", runs=freed, threads=len(threads))
        for thread_key in threads:
            self.wake(thread_key)

    async def accept(self, incoming: Incoming) -> StoredTurn:
        """Accept a message and have it served; raise as InboxStore.accept.

        If this process can serve its thread at once, a single commit accepts it and claims the run it opens.
        """
        hydrating = self._hydrating
        if hydrating is not None:
            await hydrating.prepare(incoming)
        thread_key = incoming.thread_key
        if self._stopped or self._slots.locked() or thread_key in self._working or thread_key in self._held:
            try:
                turn = await self._inbox.accept(incoming)
            except CommitUnknown:
                self._recheck(thread_key)
                raise
            reach("agent.5")
            if not turn.handled:
                self.wake(thread_key)
            return turn
        if hydrating is not None:
            hydrating.begin(incoming)  # before a slot is taken: on an error here it would never be released
        await self._slots.acquire()
        taking = asyncio.get_running_loop().create_task(self._take_in(incoming))
        self._begin(thread_key, taking)
        return (await asyncio.shield(taking))[0]

    async def _take_in(self, incoming: Incoming) -> tuple[StoredTurn, Claim | None]:
        claim = None
        try:
            turn, claim = await self._inbox.accept_and(
                incoming, lambda connection, turn, now: self._claims.claim_opened(connection, turn, self._holder, now)
            )
        finally:
            if claim is None and self._hydrating is not None:
                self._hydrating.forget(incoming.turn_id)
        reach("agent.5")
        if claim is not None:
            reach("agent.claim")
        return turn, claim

    def wake(self, thread_key: str) -> None:
        """Notify the dispatcher that the thread has work."""
        if self._stopped or thread_key in self._held:
            return
        self._pending.add(thread_key)
        if thread_key not in self._working:
            self._begin(thread_key, None)

    def look(self) -> None:
        """Notify the dispatcher that another process may have left work."""
        if self._stopped or not self.shared:
            return
        self._look_again = True
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._find(), context=self._context.copy())

    async def stop(self) -> None:
        """Stop at once; at the next start, turns in progress resume from their latest checkpoint."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        tasks = self._tasks()
        for task in tasks:
            if task not in self._returning:
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._returning, return_exceptions=True)
        if tasks:
            self._on_overflow()

    async def hold(self, thread_keys: Collection[str], *, by: str, keep: bool = False) -> frozenset[str]:
        """Stop serving these threads, in every process, until they are released.

        Turns in progress are cancelled. Return the threads not held under that name before. Raise Unavailable, after
        releasing those again; with keep they stay held in this process instead. A thread counts as held, even one held
        before, only if this did not raise.
        """
        fresh = frozenset(key for key in thread_keys if by not in self._held.get(key, ()))
        for key in thread_keys:
            self._held.setdefault(key, set()).add(by)
        try:
            await self._keep_from_all(thread_keys)
        except BaseException:
            if not keep:
                await self.release(fresh, by=by)
            raise
        return fresh

    async def release(self, thread_keys: Collection[str], *, by: str) -> None:
        """Release these threads; those without another holder may be served again.

        The caller wakes those that have work.
        """
        free = []
        for key in thread_keys:
            holders = self._held.get(key, set())
            holders.discard(by)
            if not holders:
                self._held.pop(key, None)
                free.append(key)
        await self._named_leases.drop(*map(hold_of, free))

    def holds(self, thread_key: str) -> bool:
        """Return True if this process keeps a thread from being served."""
        return thread_key in self._held

    def preempt(self, thread_key: str) -> None:
        """Stop serving a thread that another process holds; a turn in progress resumes later."""
        task = self._working.get(thread_key)
        if task is not None:
            task.cancel()

    async def idle(self) -> None:
        """Wait until no thread is being served."""
        while tasks := self._tasks():
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _keep_from_all(self, thread_keys: Collection[str]) -> None:
        tasks = [task for key in thread_keys if (task := self._working.get(key)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.gather(*self._returning, return_exceptions=True)
        await self._found.wait()  # claims found meanwhile are given back by then
        if self.shared:
            for key in thread_keys:
                await self._named_leases.take_patiently(hold_of(key))
                self._on_hold(key)
            await self._claims.settle(thread_keys)
            while await self._claims.served(thread_keys, self._holder):  # noqa: ASYNC110 - only the database knows
                await asyncio.sleep(_UNSERVED_SECONDS)

    def _tasks(self) -> list[asyncio.Task[None]]:
        looking = [self._looking] if self._looking is not None else []
        return [*self._working.values(), *looking, *self._returning]

    def _begin(self, thread_key: str, found: Claim | Taking | None) -> None:
        """Start serving a thread, optionally with a present or pending claim, for which a slot is already taken."""
        task = asyncio.get_running_loop().create_task(self._drain(thread_key, found), context=self._context.copy())
        self._working[thread_key] = task

        def never_began(done: asyncio.Task[None]) -> None:
            """Clean up after a task cancelled before its first step: none of its code ran, its cleanup included."""
            if self._working.get(thread_key) is done:
                del self._working[thread_key]
                if found is not None:
                    self._slots.release()
                for left in (found, self._prefetched.pop(thread_key, None)):
                    if left is not None:
                        self._return(left)

        task.add_done_callback(never_began)

    async def _give_back(self, found: Claim | Taking, pause: float = 0, *, counted: bool = False) -> None:
        """Give a claim back as _return does and wait for it, deferring a cancellation of this task until then."""
        returning, cancelled = self._return(found, pause, counted=counted), None
        while not returning.done():
            try:
                await asyncio.wait({returning})
            except asyncio.CancelledError as error:
                cancelled = error
        returning.result()
        if cancelled is not None:
            raise cancelled

    def _return(self, found: Claim | Taking, pause: float = 0, *, counted: bool = False) -> asyncio.Task[None]:
        """Start giving a claim back in a separate task, which hold() and stop() wait for.

        ``pause`` is the time in seconds until it may be claimed again; ``counted`` means that this counts as an
        attempt.
        """
        giving = self._return_claim(found, pause, counted=counted)
        task = asyncio.get_running_loop().create_task(giving, context=self._context.copy())
        self._returning.add(task)
        task.add_done_callback(self._returning.discard)
        return task

    async def _return_claim(self, found: Claim | Taking, pause: float, *, counted: bool) -> None:
        claim = found if isinstance(found, Claim) else (await _taken(found))[1]
        if claim is None:
            return
        try:
            with contextlib.suppress(*STORE_FAILED):  # otherwise its lease runs out
                await self._claims.give_back(claim, pause_seconds=pause, counted=counted)
        finally:
            self._on_return(claim)  # data read for the turn is stale by its next claim, given back or not

    async def _find(self) -> None:
        """Claim turns that no process serves, while there is capacity."""
        try:
            while self._look_again and not self._stopped:
                self._look_again = False
                while not self._slots.locked() and await self._find_one():
                    pass
        except Exception as error:  # noqa: BLE001 - the next search may work; without one what others left stays
            _log.warning("looking for work failed; will retry", error=type(error).__name__)
        finally:
            self._looking = None

    async def _find_one(self) -> bool:
        await self._slots.acquire()
        claim = None
        self._found.clear()
        try:
            claim = await self._claims.claim_any(self._holder, but=self._working.keys() | self._held.keys())
            if claim is not None and claim.lease.thread_key in self._held:  # this process held it meanwhile
                held, claim = claim, None
                await self._give_back(held)
                return True
            if claim is not None and claim.lease.thread_key in self._working:  # this process woke it meanwhile
                self._prefetched[claim.lease.thread_key] = claim
        finally:
            self._found.set()
            if claim is None or claim.lease.thread_key in self._prefetched:
                self._slots.release()
        if claim is None:
            return False
        thread_key = claim.lease.thread_key
        if thread_key not in self._prefetched:
            _log.info("taking over", run_id=claim.lease.run_id, attempt=claim.attempt)
            self._begin(thread_key, claim)
        return True

    async def _drain(self, thread_key: str, found: Claim | Taking | None) -> None:
        try:
            if found is not None:
                try:
                    await self._serve_found(thread_key, found)
                finally:
                    self._slots.release()
            while thread_key in self._pending:
                self._pending.discard(thread_key)
                while await self._serve_next(thread_key):
                    pass
        except HeldError as error:
            self._later(thread_key, error.seconds)
        except Exception as error:  # noqa: BLE001 - whatever it was, the thread's turns must not wait forever
            _log.warning("thread serving failed; will retry", thread=thread_key, error=type(error).__name__)
            self._later(thread_key, self._retry_seconds)
        finally:
            given = self._prefetched.pop(thread_key, None)
            try:
                if given is not None:  # the loop did not get to it
                    await self._give_back(given)
            finally:
                self._working.pop(thread_key, None)
                if found is not None or given is not None:
                    self.look()  # a leftover claim suggests that there are more

    async def _serve_found(self, thread_key: str, found: Claim | Taking) -> None:
        """Serve a claim, or the run that a message being accepted turns out to open.

        Over SQLite this dispatcher is notified of everything that follows such a message: there is no other process.
        """
        if isinstance(found, Claim):
            self._pending.add(thread_key)
            await self._serve_claim(found)
            return
        try:
            turn, claim = await _taken(found)
        except asyncio.CancelledError:
            await self._give_back(found)
            raise
        if turn is None and not found.cancelled() and isinstance(found.exception(), CommitUnknown):
            self._recheck(thread_key)
        if turn is not None and (self.shared or (claim is None and not turn.handled)):
            self._pending.add(thread_key)
        if claim is not None:
            await self._serve_claim(claim)

    async def _serve_next(self, thread_key: str) -> bool:
        if self._slots.locked():
            self._on_overflow()
        async with self._slots:
            waited = thread_key in self._waited
            self._waited.discard(thread_key)
            await self._found.wait()
            claim = self._prefetched.pop(thread_key, None)
            claim = claim or await self._claims.claim_next(thread_key, self._holder, waited=waited)
            if claim is None:
                return False
            await self._serve_claim(claim)
            return True

    async def _serve_claim(self, claim: Claim) -> None:
        """Serve a claim to its end, or give it back. Raise HeldError, which says when to retry."""
        try:
            await self._serve(claim)
        except asyncio.CancelledError:
            await self._give_back(claim)
            raise
        except Exception as error:
            pause = min(self._retry_seconds * 2 ** (claim.attempt - 1), _LONGEST_PAUSE_SECONDS)
            _log.warning(
                "turn failed; will retry", run_id=claim.lease.run_id, error=type(error).__name__, seconds=pause
            )
            await self._give_back(claim, pause, counted=True)
            raise HeldError(f"run {claim.lease.run_id} was interrupted by {type(error).__name__}", pause) from error

    def _recheck(self, thread_key: str) -> None:
        """Recheck a thread a moment later: its message may be committed although the commit's outcome is unknown."""
        if thread_key not in self._timers:
            self._later(thread_key, self._retry_seconds)

    def _later(self, thread_key: str, seconds: float) -> None:
        """Retry the thread after a pause, which the store or the holder of the run may need."""
        if self._stopped:
            return
        loop = asyncio.get_running_loop()
        earlier = self._timers.pop(thread_key, None)
        if earlier is not None:
            earlier.cancel()
        seconds = min(seconds, _LONGEST_PAUSE_SECONDS)  # if the clock was set back, it would wait for hours
        self._timers[thread_key] = loop.call_later(seconds, self._due, thread_key, context=self._context.copy())

    def _due(self, thread_key: str) -> None:
        self._timers.pop(thread_key, None)
        self._waited.add(thread_key)
        self.wake(thread_key)


async def _taken(taking: Taking) -> tuple[StoredTurn | None, Claim | None]:
    """Return an accepted message and its claim; (None, None) if accepting failed, which its caller handles."""
    await asyncio.wait({taking})
    return (None, None) if taking.cancelled() or taking.exception() is not None else taking.result()
