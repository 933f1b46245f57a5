"""The guard: RiskGate in front of the tools of any agent, whatever runs it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType

from phylactery_client.channel import new_request_id
from phylactery_client.errors import FailedPreconditionError
from phylactery_client.guard.connection import GuardConnection
from phylactery_client.guard.task import GuardedTask
from phylactery_client.guard.values import safe_id


class Guard(GuardConnection):
    """Asks RiskGate about every call of an agent, and runs what it permits, once.

    subject and tenant are whom receipts have to be for; empty ones are not compared. failures are exceptions that tools
    raise only if they had no effect. keep_seconds is how long a later request may continue an ended one. What a call
    came to is reported for settle_seconds if RiskGate is unavailable; after that its task stops.
    """

    def task(
        self,
        words: str,
        *,
        thread_id: str,
        request_id: str = "",
        continues_task_id: str = "",
        keep_seconds: int | None = None,
    ) -> AbstractAsyncContextManager[GuardedTask]:
        """Return a context manager that begins a task with the user's own words and ends it.

        words come from the input, complete and unchanged, and never from a model. request_id names the request, so that
        it can be taken up again after a restart: the same one is the same task. It is also the run_id of the task's
        calls. Without words (a picture alone), it is as without_words. Entering raises PhylacteryError if RiskGate does
        not begin the task.
        """
        return _Beginning(
            lambda: self.begin(
                words,
                thread_id=thread_id,
                request_id=request_id,
                continues_task_id=continues_task_id,
                keep_seconds=keep_seconds,
            )
        )

    async def begin(
        self,
        words: str,
        *,
        thread_id: str,
        request_id: str = "",
        continues_task_id: str = "",
        keep_seconds: int | None = None,
    ) -> GuardedTask:
        """Begin a task that the caller ends with its ``end``; see ``task``. Raise PhylacteryError.

        A request that has ended (a host resumes an old state) is taken up without its words: what ran does not run
        again, and further writes ask a person.
        """
        thread_id, request_id = safe_id(thread_id), safe_id(request_id) if request_id else new_request_id()
        task_id = ""
        if words.strip():
            try:
                begun = await self.gate.begin_task(
                    words, thread_id=thread_id, request_id=request_id, continues_task_id=continues_task_id
                )
                task_id = begun.task_id
            except FailedPreconditionError as error:
                if error.reason != "TASK_ENDED":
                    raise
        kept = self._keep_seconds if keep_seconds is None else keep_seconds
        return GuardedTask(self, task_id=task_id, thread_id=thread_id, run_id=request_id, keep_seconds=kept)

    def existing(
        self, task_id: str, *, thread_id: str, request_id: str, keep_seconds: int | None = None
    ) -> GuardedTask:
        """Return a task that was begun before, perhaps by another process."""
        kept = self._keep_seconds if keep_seconds is None else keep_seconds
        return GuardedTask(self, task_id=task_id, thread_id=thread_id, run_id=request_id, keep_seconds=kept)

    def without_words(self, thread_id: str, *, request_id: str = "") -> GuardedTask:
        """Return a session for a host that never sees the user's words: reads are allowed, and writes ask a person."""
        return GuardedTask(self, task_id="", thread_id=thread_id, run_id=request_id or new_request_id())


class _Beginning(AbstractAsyncContextManager[GuardedTask]):
    """A task that begins when it is entered."""

    def __init__(self, begin: Callable[[], Awaitable[GuardedTask]]) -> None:
        self._begin = begin
        self._task: GuardedTask | None = None

    async def __aenter__(self) -> GuardedTask:
        self._task = await self._begin()
        return await self._task.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._task is not None:
            await self._task.__aexit__(kind, error, trace)
