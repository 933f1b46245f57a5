"""Long work in threads, one piece at a time of each caller: many pieces of one make no other wait for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar
from weakref import WeakValueDictionary

T = TypeVar("T")


class Lanes:
    """A few threads that callers share by turns: of each at most one piece waits for a thread or runs in it."""

    def __init__(self, threads: int, name: str) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix=name)
        self._lanes: WeakValueDictionary[Hashable, asyncio.Lock] = WeakValueDictionary()

    async def run(self, who: Hashable, work: Callable[[], T]) -> T:
        """Run a piece of work of a caller in a thread and return its result.

        A caller who hangs up ends no thread, so that their next piece waits until it has ended by itself.
        """
        loop, lane = asyncio.get_running_loop(), self._lanes.setdefault(who, asyncio.Lock())
        await lane.acquire()
        try:
            job = self._threads.submit(work)
        except BaseException:
            lane.release()
            raise
        job.add_done_callback(lambda _: loop.call_soon_threadsafe(lane.release))
        return await asyncio.wrap_future(job)

    def close(self) -> None:
        """End the threads once what runs has ended; what waits is dropped."""
        self._threads.shutdown(wait=False, cancel_futures=True)
