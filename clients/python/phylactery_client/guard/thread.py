"""A guard in an event loop of its own, for hosts that have none, or several one after the other."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Generator, Mapping
from concurrent.futures import Future, InvalidStateError, wait
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

from phylactery_client.guard.guard import Guard
from phylactery_client.guard.outcomes import Outcome
from phylactery_client.guard.running import for_future
from phylactery_client.guard.task import GuardedTask
from phylactery_client.riskgate import RiskGateClient

T = TypeVar("T")

_ENDING_SECONDS: Final = 30.0
"""How long a cancelled call may take to report its doubt: longer than a guard tries by default."""

TaskOf = Callable[[Guard], GuardedTask]
"""Return the task that a call belongs to; it runs in the guard's loop."""


class GuardThread:
    """A guard whose connection lives in a thread of its own; tools still run where they are called from.

    target and connection are those of RiskGateClient, and options those of Guard. The thread starts with the first
    call.
    """

    def __init__(self, target: str, *, connection: Mapping[str, Any] | None = None, **options: Any) -> None:
        self._target, self._connection, self._options = target, dict(connection or {}), options
        self._lock = threading.Lock()
        self._serving: _Serving | None = None

    def __enter__(self) -> Self:
        """Return the guard."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

    def run(self, work: Callable[[Guard], Awaitable[T]]) -> T:
        """Return the result of work in the guard's loop, from a thread that may wait."""
        return self._begun(work).wait()

    async def arun(self, work: Callable[[Guard], Awaitable[T]]) -> T:
        """Return the result of work in the guard's loop, from another loop."""
        return await self._begun(work)

    def call(
        self,
        task_of: TaskOf,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        execute: Callable[[dict[str, Any]], Any],
        **options: Any,
    ) -> Outcome:
        """Make a guarded call whose tool runs in this thread; options are those of GuardedTask.call."""
        handed: queue.SimpleQueue[tuple[dict[str, Any], Future[Any]] | None] = queue.SimpleQueue()

        async def here(bound: dict[str, Any]) -> Any:
            done: Future[Any] = Future()
            handed.put((bound, done))
            return await asyncio.wrap_future(done)

        def called(guard: Guard) -> Awaitable[Outcome]:
            return task_of(guard).call(tool, arguments, execute=here, **options)

        work = self._begun(called)
        work.ended.add_done_callback(lambda _: handed.put(None))
        try:
            while (given := handed.get()) is not None:
                bound, done = given
                try:
                    result = execute(bound)
                except Exception as error:  # noqa: BLE001 - the call reports it and raises it again
                    settled = functools.partial(done.set_exception, for_future(error))
                else:
                    settled = functools.partial(done.set_result, result)
                with suppress(InvalidStateError):  # the guard was closed meanwhile, and has reported its doubt
                    settled()
        except BaseException:  # an interrupt of the process; the tool may have been running
            work.cancel()
            wait([work.ended], _ENDING_SECONDS)  # its doubt is reported before the process may end
            raise
        return work.wait()

    async def acall(
        self,
        task_of: TaskOf,
        tool: str,
        arguments: Mapping[str, Any] | str,
        *,
        execute: Callable[[dict[str, Any]], Coroutine[Any, Any, Any]],
        **options: Any,
    ) -> Outcome:
        """Make a guarded call whose coroutine runs in the caller's loop; options are those of GuardedTask.call."""
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()

        async def there(bound: dict[str, Any]) -> Any:
            return await _Elsewhere(loop, lambda: execute(bound), context)

        return await self.arun(lambda guard: task_of(guard).call(tool, arguments, execute=there, **options))

    def close(self) -> None:
        """Cancel the calls that run, which are reported as in doubt, then close the connection and end the thread.

        Not from the event loop of a caller of acall: its tool could not be cancelled while the loop waits here.
        """
        with self._lock:
            serving, self._serving = self._serving, None
            if serving is None:
                return
            ended = _Elsewhere(serving.loop, serving.end)
        try:
            ended.wait()
        finally:
            serving.loop.call_soon_threadsafe(serving.loop.stop)
            serving.thread.join()

    def _begun(self, work: Callable[[Guard], Awaitable[T]]) -> _Elsewhere[T]:
        with self._lock:  # so that nothing begins after the end has
            serving = self._serving
            if serving is None:
                loop = asyncio.new_event_loop()
                thread = threading.Thread(target=_serve, args=(loop,), name="guard", daemon=True)
                serving = self._serving = _Serving(loop, thread)
                thread.start()
            return _Elsewhere(serving.loop, lambda: serving.do(self._made, work))

    def _made(self) -> Guard:
        return Guard(RiskGateClient(self._target, **self._connection), **self._options)


@dataclass(eq=False)
class _Serving:
    """A thread, its loop, and what runs in it; all but the first two are used in that loop only."""

    loop: asyncio.AbstractEventLoop
    thread: threading.Thread
    guard: Guard | None = None
    running: set[asyncio.Task[Any]] = field(default_factory=set)

    async def do(self, make: Callable[[], Guard], work: Callable[[Guard], Awaitable[T]]) -> T:
        """Return the result of work with the guard, which the first one makes."""
        task = asyncio.current_task()
        assert task is not None
        self.running.add(task)
        try:
            self.guard = self.guard or make()
            return await work(self.guard)
        finally:
            self.running.discard(task)

    async def end(self) -> None:
        """Cancel what runs, wait until it has reported that, and close the connection."""
        running = list(self.running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running, timeout=_ENDING_SECONDS)
        if self.guard is not None:
            await self.guard.gate.close()


class _Elsewhere(Generic[T]):
    """A coroutine in another thread's event loop. Whoever is cancelled awaiting it cancels it, and awaits its end."""

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[], Coroutine[Any, Any, T]],
        context: contextvars.Context | None = None,
    ) -> None:
        self._loop, self._make, self._context = loop, make, context
        self._task: asyncio.Task[T] | None = None
        self.ended: Future[T] = Future()
        loop.call_soon_threadsafe(self._start)

    def cancel(self) -> None:
        """Cancel it."""
        with suppress(RuntimeError):  # its loop is closed, and it has ended with that
            self._loop.call_soon_threadsafe(lambda: self._task is not None and self._task.cancel())

    def wait(self) -> T:
        """Return the result, from a thread that may wait."""
        try:
            return self.ended.result()
        except _CancelledThere:
            raise asyncio.CancelledError from None
        except BaseException:
            self.cancel()
            raise

    def __await__(self) -> Generator[Any, None, T]:
        """Return the result, from a coroutine."""
        return self._awaited().__await__()

    async def _awaited(self) -> T:
        ended, cancelled = asyncio.wrap_future(self.ended), None
        while True:
            try:
                result = await asyncio.shield(ended)
            except _CancelledThere:
                raise (cancelled or asyncio.CancelledError()) from None
            except asyncio.CancelledError as error:
                cancelled = error
                self.cancel()
            else:
                if cancelled is not None:
                    raise cancelled
                return result

    def _start(self) -> None:
        # not a coroutine yet until it runs there, so that none is left unawaited if the loop ends first
        self._task = self._loop.create_task(self._make(), context=self._context)
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.ended.set_exception(_CancelledThere())
        elif (error := task.exception()) is not None:
            self.ended.set_exception(error)
        else:
            self.ended.set_result(task.result())


class _CancelledThere(Exception):
    """The coroutine was cancelled in its own loop."""


def _serve(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
