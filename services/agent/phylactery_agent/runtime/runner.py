"""The runner: each thread's turns strictly in order, different threads side by side, bounded."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Collection

from phylactery_chassis.logs import get_logger

from phylactery_agent.runtime.inbox import InboxStore
from phylactery_agent.runtime.runs import RunStore
from phylactery_agent.runtime.turns import ServeTurn

_log = get_logger("runner")


class Runner:
    """Serves whatever the inbox holds, for as long as the process lives."""

    def __init__(
        self,
        inbox: InboxStore,
        runs: RunStore,
        serve: ServeTurn,
        *,
        holder: str,
        max_concurrent: int,
        retry_seconds: float,
    ) -> None:
        self._inbox, self._runs, self._serve = inbox, runs, serve
        self._holder, self._retry_seconds = holder, retry_seconds
        self._slots = asyncio.Semaphore(max_concurrent)
        self._working: dict[str, asyncio.Task[None]] = {}
        self._dirty: set[str] = set()
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._context = contextvars.copy_context()
        """The context of who made the runner: a caller's deadline, identity and span must not leak into a turn."""
        self._stopped = False
        self._held: set[str] = set()

    async def start(self) -> None:
        """Takes over what a dead predecessor left: its leases are free, its turns go on."""
        freed = await self._runs.release_all()
        threads = await self._inbox.threads_with_work()
        if freed or threads:
            _log.info("recovering", runs=freed, threads=len(threads))
        for thread_key in threads:
            self.wake(thread_key)

    def wake(self, thread_key: str) -> None:
        """Says that the thread has work."""
        if self._stopped or thread_key in self._held:
            return
        self._dirty.add(thread_key)
        if thread_key not in self._working:
            self._working[thread_key] = asyncio.get_running_loop().create_task(
                self._drain(thread_key), context=self._context.copy()
            )

    async def stop(self) -> None:
        """Stops at once; turns that were being served go on at the next start, exactly where they stand."""
        self._stopped = True
        for timer in self._timers.values():
            timer.cancel()
        tasks = list(self._working.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def hold(self, thread_keys: Collection[str]) -> frozenset[str]:
        """Serves none of these threads until they are released; what is being served stops where it stands.

        Answers those that were not held before.
        """
        fresh = frozenset(thread_keys) - self._held
        self._held |= fresh
        tasks = [task for key in thread_keys if (task := self._working.get(key)) is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return fresh

    def release(self, thread_keys: Collection[str]) -> None:
        """Lets these threads be served again; whoever held them wakes those that have work."""
        self._held.difference_update(thread_keys)

    async def idle(self) -> None:
        """Waits until no thread is being served."""
        while self._working:
            await asyncio.gather(*self._working.values(), return_exceptions=True)

    async def _drain(self, thread_key: str) -> None:
        try:
            while thread_key in self._dirty:
                self._dirty.discard(thread_key)
                while await self._serve_next(thread_key):
                    pass
        except Exception as error:  # noqa: BLE001 - whatever it was, the thread's turns must not wait for ever
            _log.warning("thread waits", thread=thread_key, error=type(error).__name__)
            self._later(thread_key)
        finally:
            self._working.pop(thread_key, None)

    async def _serve_next(self, thread_key: str) -> bool:
        async with self._slots:
            claim = await self._runs.claim_next(thread_key, self._holder)
            if claim is None:
                return False
            await self._serve(claim)
            return True

    def _later(self, thread_key: str) -> None:
        """Tries the thread again after a pause: the store, or whoever holds the run, may need one."""
        loop = asyncio.get_running_loop()
        earlier = self._timers.pop(thread_key, None)
        if earlier is not None:
            earlier.cancel()
        self._timers[thread_key] = loop.call_later(
            self._retry_seconds, self.wake, thread_key, context=self._context.copy()
        )
