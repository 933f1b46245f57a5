"""Jobs of a database's writer, their queue and their outcomes."""

from __future__ import annotations

import asyncio
import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy.engine import Connection

T = TypeVar("T")
Work = Callable[[Connection], T]

_MAX_GROUP = 256
_LONG_SECONDS = 2.0
"""A transaction that takes longer than this makes the next one smaller."""


class Together(Generic[T]):
    """The combined waiter of a task that submitted several jobs: it wakes once, when the last of them has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.ended: asyncio.Future[list[T | BaseException]] = loop.create_future()
        self._results: list[Any] = [None] * count
        self._left = count

    def waiters(self) -> list[Share[T]]:
        """Return one waiter per job, in order."""
        return [Share(self, number) for number in range(self._left)]

    def take(self, number: int, result: T | BaseException) -> None:
        """Record the outcome of one job."""
        self._results[number] = result
        self._left -= 1
        if not self._left:
            self.ended.set_result(self._results)


@dataclass(slots=True)
class Share(Generic[T]):
    """The waiter of one of several jobs, with the interface of a future."""

    together: Together[T]
    number: int

    def cancelled(self) -> bool:
        """Return True if the waiting task was cancelled."""
        return self.together.ended.cancelled()

    def done(self) -> bool:
        """Return True if the waiting task has ended or was cancelled."""
        return self.together.ended.done()

    def set_result(self, result: T) -> None:
        """Record the job's result."""
        self.together.take(self.number, result)

    def set_exception(self, fault: BaseException) -> None:
        """Record the job's exception."""
        self.together.take(self.number, fault)


@dataclass(slots=True)
class Job(Generic[T]):
    """Work and its waiter: a task of an event loop, or a thread."""

    work: Work[T]
    waiter: asyncio.Future[T] | Future[T] | Share[T]
    loop: asyncio.AbstractEventLoop | None = None

    def wanted(self) -> bool:
        """Return True if the result is still awaited."""
        if isinstance(self.waiter, Future):
            return self.waiter.set_running_or_notify_cancel()
        return not self.waiter.cancelled()


@dataclass(slots=True)
class Waiting:
    """Jobs of one event loop not yet handed to the writer.

    ``looking``: a check of the batch is already scheduled. ``timer``: the batch waits for more writers, until
    ``latest`` (loop time) at most. ``usual``: the size of the previous batch.
    """

    jobs: list[Job[Any]] = field(default_factory=list)
    looking: bool = False
    writing: bool = False
    timer: asyncio.TimerHandle | None = None
    latest: float = 0.0
    usual: int = 0

    def take(self) -> list[Job[Any]]:
        """Return the jobs and clear the batch."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        jobs, self.jobs = self.jobs, []
        return jobs


class JobQueue:
    """The writer's queue, grouped in order of arrival.

    With ``short`` the group size adapts to keep transactions short. That is for a server, where every statement is a
    round trip; a file syncs many jobs as fast as one, and small groups would only slow a slow disk down.
    """

    def __init__(self, *, short: bool) -> None:
        self._short = short
        self._given: queue.SimpleQueue[list[Job[Any]] | None] = queue.SimpleQueue()
        self._next: list[Job[Any]] = []
        self._most, self._ended = _MAX_GROUP, False

    def put(self, jobs: list[Job[Any]]) -> None:
        """Add jobs. Thread-safe."""
        self._given.put(jobs)

    def end(self) -> None:
        """Mark the end: no more jobs follow."""
        self._given.put(None)

    def groups(self) -> Iterator[list[Job[Any]]]:
        """Yield groups of waiting jobs until the end. A group is done when the next one is requested.

        If a short group took long, other transactions waited for the rows it touched, so the next is half as large.
        """
        while self._fill():
            group, self._next = self._next[: self._most], self._next[self._most :]
            began = time.monotonic()
            yield group
            if self._short and time.monotonic() - began > _LONG_SECONDS:
                self._most = max(1, len(group) // 2)
            else:
                self._most = min(_MAX_GROUP, 2 * self._most)

    def _fill(self) -> bool:
        """Wait for a job and take those queued with it. Return False at the end of the queue."""
        while not self._next and not self._ended:
            self._take()
        while len(self._next) < self._most and not self._ended and not self._given.empty():
            self._take()
        return bool(self._next)

    def _take(self) -> None:
        jobs = self._given.get()
        self._ended = jobs is None
        self._next += jobs or ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a job: its result or its exception."""

    job: Job[Any]
    result: Any = None
    fault: BaseException | None = None

    def tell(self) -> None:
        """Resolve the waiter, unless it was cancelled."""
        waiter = self.job.waiter
        if waiter.done():
            return
        if self.fault is None:
            waiter.set_result(self.result)
        elif isinstance(self.fault, StopIteration):  # a future does not accept StopIteration
            waiter.set_exception(RuntimeError("the work ended in StopIteration"))
        else:
            waiter.set_exception(self.fault)


def tell_all(outcomes: list[Outcome]) -> None:
    """Resolve every waiter."""
    for outcome in outcomes:
        outcome.tell()
