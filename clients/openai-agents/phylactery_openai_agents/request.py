"""The user's request that the runs of a block serve."""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from agents import UserError
from phylactery_client import Guard, GuardedTask, GuardThread
from phylactery_client.errors import DeadlineError, UnavailableError


@dataclass(eq=False)
class Request:
    """One request of a user: ``async with`` makes it that of the runs in its block, and ends it unless a call waits.

    Keep request_id to resume a run in another process: the same id with the same words is the same request.
    """

    words: str = field(repr=False)
    thread_id: str
    request_id: str
    task_id: str = ""
    """Its task at RiskGate, once it is entered: what a later request may continue."""
    _guard: GuardThread = field(kw_only=True, repr=False)
    _continues: str = field(default="", kw_only=True, repr=False)
    _keep_seconds: int = field(default=0, kw_only=True, repr=False)
    _suspended: set[str] = field(default_factory=set, init=False, repr=False)
    _entered: list[Any] = field(default_factory=list, init=False, repr=False)

    async def __aenter__(self) -> Self:
        """Begin its task. While RiskGate is unavailable it has none, and every call is blocked."""
        if not self.task_id:
            self.task_id = await self._guard.arun(self._begin)
        self._entered.append(_current.set(self))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End its task unless a call waits; what was not shown to RiskGate ends it as well."""
        _current.reset(self._entered.pop())
        if not self._suspended or await self.stopped():
            await self._guard.arun(lambda guard: self.task(guard).end())

    def task(self, guard: Guard) -> GuardedTask:
        """Return its guarded task."""
        return guard.existing(
            self.task_id, thread_id=self.thread_id, request_id=self.request_id, keep_seconds=self._keep_seconds
        )

    async def stopped(self) -> str:
        """Return why it takes no further calls, empty if it does."""

        async def why(guard: Guard) -> str:
            return self.task(guard).stopped

        return await self._guard.arun(why)

    def suspend(self, tool_call_id: str) -> None:
        """Keep its task open for a call that waits."""
        self._suspended.add(tool_call_id)

    def answered(self, tool_call_id: str) -> None:
        """Note that a call no longer waits."""
        self._suspended.discard(tool_call_id)

    async def _begin(self, guard: Guard) -> str:
        try:
            task = await guard.begin(
                self.words,
                thread_id=self.thread_id,
                request_id=self.request_id,
                continues_task_id=self._continues,
            )
        except (UnavailableError, DeadlineError):
            return ""
        return task.id


_current: ContextVar[Request | None] = ContextVar("phylactery_openai_agents_request", default=None)


def current_request() -> Request:
    """Return the request whose block this code runs in. Raise UserError, which ends a run, if there is none."""
    request = _current.get()
    if request is None:
        raise UserError("no request of a user here: run the agent in `async with gate.request(words, thread_id=…)`")
    return request
