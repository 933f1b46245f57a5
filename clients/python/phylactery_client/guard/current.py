"""The guarded task of the current context, for hosts that cannot pass it along."""

from __future__ import annotations

from phylactery_client.guard.outcomes import GuardError
from phylactery_client.guard.task import GuardedTask, entered


def current_task(thread_id: str = "") -> GuardedTask:
    """Return the task whose block this code runs in.

    Raise GuardError if there is none, if it has ended, or if several are open in this context, because requests are
    interleaved in it: the call of one would be judged by the words of another. thread_id picks among several.
    """
    tasks = entered.get()
    if not tasks:
        raise GuardError("no guarded task here; enter one with `async with guard.task(words, thread_id=…)`")
    open_ones = [task for task in tasks if not task.ended]
    if not open_ones:
        raise GuardError("the guarded task of this context has ended; enter another one")
    found = [task for task in open_ones if not thread_id or task.is_of(thread_id)]
    if not found:
        raise GuardError("the guarded task of this context is of another thread")
    if len(found) > 1:
        raise GuardError("several guarded tasks are open in this context; give each request a context of its own")
    return found[0]
