"""What a database's writer is given to do, and who is told how it ended."""

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
"""How long a transaction may take before the next has fewer jobs."""


class Together(Generic[T]):
    """What one task waits for that gave the writer several jobs: it is woken once, when the last of them has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop, count: int) -> None:
        self.ended: asyncio.Future[list[T | BaseException]] = loop.create_future()
        self._results: list[Any] = [None] * count
        self._left = count

    def waiters(self) -> list[Share[T]]:
        """Return who waits for each of the jobs, in order."""
        return [Share(self, number) for number in range(self._left)]

    def take(self, number: int, result: T | BaseException) -> None:
        """Take what one job came to."""
        self._results[number] = result
        self._left -= 1
        if not self._left:
            self.ended.set_result(self._results)


@dataclass(slots=True)
class Share(Generic[T]):
    """Who waits for one of several jobs, as a future would."""

    together: Together[T]
    number: int

    def cancelled(self) -> bool:
        """Return whether nobody waits any more."""
        return self.together.ended.cancelled()

    def done(self) -> bool:
        """Return whether nobody waits any more."""
        return self.together.ended.done()

    def set_result(self, result: T) -> None:
        """Take what the job answered."""
        self.together.take(self.number, result)

    def set_exception(self, fault: BaseException) -> None:
        """Take what the job raised."""
        self.together.take(self.number, fault)


@dataclass(slots=True)
class Job(Generic[T]):
    """Work and who waits for it: a task of an event loop, or a thread."""

    work: Work[T]
    waiter: asyncio.Future[T] | Future[T] | Share[T]
    loop: asyncio.AbstractEventLoop | None = None

    def wanted(self) -> bool:
        """Return whether anybody still waits."""
        if isinstance(self.waiter, Future):
            return self.waiter.set_running_or_notify_cancel()
        return not self.waiter.cancelled()


@dataclass(slots=True)
class Waiting:
    """What one event loop has to write and the writer has not got.

    looking says that somebody will soon decide, timer that it waits for company until latest, a time of the loop;
    usual is how many jobs the writer got the last time.
    """

    jobs: list[Job[Any]] = field(default_factory=list)
    looking: bool = False
    writing: bool = False
    timer: asyncio.TimerHandle | None = None
    latest: float = 0.0
    usual: int = 0

    def take(self) -> list[Job[Any]]:
        """Return the jobs, which are no longer here."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        jobs, self.jobs = self.jobs, []
        return jobs


class JobQueue:
    """What a writer is given, in the order it came, in groups.

    With ``short`` their size keeps a transaction short. That is for a server, where every statement has its way to go;
    a file takes as long to sync one job as many, and in small groups a slow disk would only be slower.
    """

    def __init__(self, *, short: bool) -> None:
        self._short = short
        self._given: queue.SimpleQueue[list[Job[Any]] | None] = queue.SimpleQueue()
        self._next: list[Job[Any]] = []
        self._most, self._ended = _MAX_GROUP, False

    def put(self, jobs: list[Job[Any]]) -> None:
        """Add jobs; from any thread."""
        self._given.put(jobs)

    def end(self) -> None:
        """Say that nothing comes any more."""
        self._given.put(None)

    def groups(self) -> Iterator[list[Job[Any]]]:
        """Yield whatever waits, as soon as something does, until the end; a group is done when the next is asked for.

        Where a short one took long, others waited for the rows it touched, and the next is half as large.
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
        """Wait for a job and take what came with it; False once there is none and none will be."""
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
    """How a job ended: its result, or what it raised."""

    job: Job[Any]
    result: Any = None
    fault: BaseException | None = None

    def tell(self) -> None:
        """Return the waiter, if it still waits."""
        waiter = self.job.waiter
        if waiter.done():
            return
        if self.fault is None:
            waiter.set_result(self.result)
        elif isinstance(self.fault, StopIteration):  # which no future takes
            waiter.set_exception(RuntimeError("the work ended in StopIteration"))
        else:
            waiter.set_exception(self.fault)


def tell_all(outcomes: list[Outcome]) -> None:
    """Return every waiter."""
    for outcome in outcomes:
        outcome.tell()
