"""Running tools, and finishing what must be finished although the caller is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def finished(work: Coroutine[Any, Any, T]) -> tuple[T, asyncio.CancelledError | None]:
    """Return the result of work, which is done even if the caller is cancelled, and that cancellation, if any."""
    task, cancelled = asyncio.ensure_future(work), None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            if task.cancelled():
                raise
            cancelled = error
        except BaseException:  # noqa: BLE001 - it is raised by the task's result
            break
    try:
        return task.result(), cancelled
    except Exception as error:
        if cancelled is not None:
            raise cancelled from error
        raise


async def uncancelled(work: Coroutine[Any, Any, T]) -> T:
    """Return the result of work. Raise CancelledError after it is done if the caller was cancelled meanwhile."""
    result, cancelled = await finished(work)
    if cancelled is not None:
        raise cancelled
    return result


def is_async(execute: Callable[..., Any]) -> bool:
    """Return True if calling it returns a coroutine."""
    while isinstance(execute, functools.partial):
        execute = execute.func
    return inspect.iscoroutinefunction(execute) or inspect.iscoroutinefunction(getattr(execute, "__call__", None))  # noqa: B004 - its kind is asked, not whether it is there


def for_future(error: BaseException) -> BaseException:
    """Return what a future takes in place of an error of a tool: a future takes no StopIteration."""
    if not isinstance(error, StopIteration):
        return error
    failure = RuntimeError("the tool raised StopIteration")
    failure.__cause__ = error
    return failure


def in_thread(execute: Callable[[Any], T], arguments: Any) -> asyncio.Future[T]:
    """Start a function in a thread of its own and return its result's future.

    Of a pool's threads, all could wait for calls that need one more.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: Any = None
        failure: BaseException | None = None
        try:
            result = context.run(execute, arguments)
        except BaseException as error:  # noqa: BLE001 - the caller gets it
            failure = for_future(error)
        try:
            loop.call_soon_threadsafe(settle, result, failure)
        except RuntimeError:  # the loop is closed, and with it whoever waited
            return

    threading.Thread(target=work, name="guarded-tool", daemon=True).start()
    return future
