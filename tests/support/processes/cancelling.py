"""Cancellation at the n-th suspension of a coroutine, counted rather than timed, so that every await is covered."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class Cut:
    """Counts the suspensions of some work, including those of tasks it starts, and cancels it at one of them.

    It does what Task.cancel would do to the task that awaits ``run``, exactly while the work is at its ``at``-th
    suspension, counted from 1; what it awaits there is cancelled as usual. With ``late`` the cancellation comes after
    the awaited event happened but before the work resumes: for example, after a commit whose result was not yet
    received.
    """

    def __init__(self, at: int, *, late: bool = False) -> None:
        self.at, self.seen, self.done, self._late = at, 0, False, late
        self._root: asyncio.Task[Any] | None = None

    @property
    def fired(self) -> bool:
        """Return True if the work reached that suspension."""
        return self._root is not None and self.seen >= self.at

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run the work in this task. Raise what it raises, or CancelledError if it was cancelled."""
        loop = asyncio.get_running_loop()
        if loop.get_task_factory() is not _task:
            assert loop.get_task_factory() is None, "another task factory would be lost"
            loop.set_task_factory(_task)
        self._root = asyncio.current_task()
        before = _CUT.set(self)
        try:
            counted: Coroutine[Any, Any, T] = _Counted(work, self)
            return await counted
        finally:
            self.done = True
            _CUT.reset(before)

    def suspended(self, waits_for: Any) -> None:
        """Count a suspension; what runs after the work has ended no longer counts."""
        if self.done:
            return
        self.seen += 1
        if self.seen != self.at:
            return
        here = asyncio.current_task()
        if self._late and asyncio.isfuture(waits_for):
            waits_for.add_done_callback(lambda _: self._cancel(here))  # before the task's own callback, which wakes it
        else:
            self._cancel(None)

    def _cancel(self, here: asyncio.Task[Any] | None) -> None:
        """Cancel the work, and the task it is suspended in, which would otherwise resume first."""
        if self.done:
            return
        for task in {self._root, here} - {None}:
            assert task is not None
            task.cancel()


async def kept_on(life: Callable[[int], Coroutine[Any, Any, Any]], moments: int) -> list[int]:
    """Run life(at) for each moment from 1, cancelled at that one; return those at which it went on for a minute."""

    async def goes_on(at: int) -> bool:
        cut = Cut(at)
        running = asyncio.create_task(cut.run(life(at)))
        while not cut.fired:  # noqa: ASYNC110 - it is counted, not signalled
            await asyncio.sleep(0.01)
        ended, _ = await asyncio.wait({running}, timeout=60)
        running.cancel()
        return not ended

    numbers = range(1, moments + 1)
    went_on = await asyncio.gather(*map(goes_on, numbers))
    return [at for at, goes in zip(numbers, went_on, strict=True) if goes]


class _Counted(Coroutine[Any, Any, Any]):
    """A coroutine that reports each of its suspensions."""

    def __init__(self, work: Coroutine[Any, Any, Any], cut: Cut) -> None:
        self._work, self._cut = work, cut

    def send(self, value: Any, /) -> Any:
        waits_for = self._work.send(value)
        self._cut.suspended(waits_for)
        return waits_for

    def throw(self, *error: Any) -> Any:
        waits_for = self._work.throw(*error)
        self._cut.suspended(waits_for)
        return waits_for

    def close(self) -> None:
        self._work.close()

    def __await__(self) -> _Counted:
        return self

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> Any:
        return self.send(None)


_CUT: ContextVar[Cut | None] = ContextVar("cut", default=None)
"""The current Cut: a task inherits the context of the code that started it."""


def _task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Task factory of a loop; a task started by counted work is counted too."""
    context = options.get("context")
    cut = _CUT.get() if context is None else context.get(_CUT)
    counted = work if cut is None or cut.done else _Counted(work, cut)
    return asyncio.Task(counted, loop=loop, **options)
