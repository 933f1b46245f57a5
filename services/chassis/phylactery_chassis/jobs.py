"""What a database's writer is given to do, and who is told how it ended."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from sqlalchemy.engine import Connection

T = TypeVar("T")
Work = Callable[[Connection], T]


@dataclass(slots=True)
class Job(Generic[T]):
    """Work and who waits for it: a task of an event loop, or a thread."""

    work: Work[T]
    waiter: asyncio.Future[T] | Future[T]
    loop: asyncio.AbstractEventLoop | None = None

    def wanted(self) -> bool:
        """Says whether anybody still waits."""
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
        """Answers the jobs, which are no longer here."""
        if self.timer is not None:
            self.timer.cancel()
            self.timer = None
        jobs, self.jobs = self.jobs, []
        return jobs


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a job ended: its result, or what it raised."""

    job: Job[Any]
    result: Any = None
    fault: BaseException | None = None

    def tell(self) -> None:
        """Answers the waiter, if it still waits."""
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
    """Answers every waiter."""
    for outcome in outcomes:
        outcome.tell()
