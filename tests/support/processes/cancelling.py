"""Cancels work at one of its suspensions, counted and not timed, so that every await of it can have its turn."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class Cut:
    """Counts the suspensions of some work, those of the tasks it begins too, and cancels it at one of them.

    That is what Task.cancel does of the task that awaits ``run``, exactly while the work stands at its ``at``-th
    suspension, the first being 1; whatever it awaits there is cancelled as ever. With ``late`` that comes once what it
    awaits has happened, before the work goes on with it: a commit stands, and nobody has heard of it.
    """

    def __init__(self, at: int, *, late: bool = False) -> None:
        self.at, self.seen, self.done, self._late = at, 0, False, late
        self._root: asyncio.Task[Any] | None = None

    @property
    def fired(self) -> bool:
        """Return whether the work came as far as that."""
        return self._root is not None and self.seen >= self.at

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do the work in this task. Raise what it raises, CancelledError where it was cancelled."""
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
        """Note one; what goes on after the work has ended counts no more."""
        if self.done:
            return
        self.seen += 1
        if self.seen != self.at:
            return
        here = asyncio.current_task()
        if self._late and asyncio.isfuture(waits_for):
            waits_for.add_done_callback(lambda _: self._cancel(here))  # before the task's own, which wakes it
        else:
            self._cancel(None)

    def _cancel(self, here: asyncio.Task[Any] | None) -> None:
        """Cancel the work, and where it stands: that would go on before it hears of it."""
        if self.done:
            return
        for task in {self._root, here} - {None}:
            assert task is not None
            task.cancel()


class _Counted(Coroutine[Any, Any, Any]):
    """Is a coroutine that tells of each of its suspensions."""

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
"""Whose work this is: a task has the context of whoever began it."""


def _task(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    """Make every task of a loop; one that counted work begins is counted with it."""
    context = options.get("context")
    cut = _CUT.get() if context is None else context.get(_CUT)
    counted = work if cut is None or cut.done else _Counted(work, cut)
    return asyncio.Task(counted, loop=loop, **options)
