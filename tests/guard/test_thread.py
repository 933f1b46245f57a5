"""A guard in a thread of its own: its callers always get an answer, and RiskGate what came of a call."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest
from phylactery_client import GuardThread, Ran

WORDS = 'Read minutes.txt and write "hello" to log.txt'
WRITE = {"path": "log.txt", "content": "hello"}
_numbers = itertools.count(1)


@pytest.fixture
def guard_thread(shared_riskgate):
    with GuardThread(shared_riskgate.target, connection={"subject": f"threaded-{next(_numbers)}"}) as made:
        yield made


@pytest.fixture
def task_of(guard_thread, names):
    task = guard_thread.run(lambda guard: guard.begin(WORDS, **names))
    return lambda guard: guard.existing(task.id, **names)


class Caller(threading.Thread):
    """A thread that makes a guarded call and keeps its end."""

    def __init__(self, guard_thread, task_of, execute):
        super().__init__(daemon=True)
        self.guard_thread, self.task_of, self.execute = guard_thread, task_of, execute
        self.end = None

    def run(self):
        try:
            self.end = self.guard_thread.call(
                self.task_of, "write_file", WRITE, tool_call_id="c1", execute=self.execute
            )
        except BaseException as error:  # noqa: BLE001 - it is what the test looks at
            self.end = error


@pytest.mark.slow
def test_a_tool_that_raises_stop_iteration_ends_the_call(guard_thread, task_of, names, shared_riskgate):
    def tool(_):
        return next(iter(()))

    caller = Caller(guard_thread, task_of, tool)
    caller.start()
    caller.join(60)
    assert isinstance(caller.end, RuntimeError)
    assert isinstance(caller.end.__cause__, StopIteration)
    assert shared_riskgate.outcomes(names["request_id"]) == [("IN_DOUBT", "TOOL_FAILED")]


@pytest.mark.slow
def test_an_interrupted_call_leaves_only_after_its_doubt_is_reported(guard_thread, task_of, names, shared_riskgate):
    def tool(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard_thread.call(task_of, "write_file", WRITE, tool_call_id="c1", execute=tool)
    assert shared_riskgate.outcomes(names["request_id"]) == [("IN_DOUBT", "CANCELLED")]


def test_closed_during_a_call_it_reports_the_doubt_and_the_caller_goes_on(
    guard_thread, task_of, names, shared_riskgate
):
    begun, go_on = threading.Event(), threading.Event()

    def tool(_):
        begun.set()
        go_on.wait(60)
        return "written after all"

    caller = Caller(guard_thread, task_of, tool)
    caller.start()
    assert begun.wait(60)
    guard_thread.close()
    assert shared_riskgate.outcomes(names["request_id"]) == [("IN_DOUBT", "CANCELLED")]
    go_on.set()
    caller.join(60)
    assert isinstance(caller.end, asyncio.CancelledError)
    # it begins anew with the next call
    other = {"path": "minutes.txt"}
    ran = guard_thread.call(task_of, "read_file", other, tool_call_id="c2", execute=lambda _: "read")
    assert isinstance(ran, Ran)


async def test_closed_during_a_call_of_a_loop_it_cancels_the_tool(guard_thread, names, shared_riskgate):
    begun, cancelled = asyncio.Event(), asyncio.Event()
    task = await guard_thread.arun(lambda guard: guard.begin(WORDS, **names))

    async def tool(_):
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    call = asyncio.create_task(
        guard_thread.acall(
            lambda guard: guard.existing(task.id, **names), "write_file", WRITE, tool_call_id="c1", execute=tool
        )
    )
    await begun.wait()
    await asyncio.to_thread(guard_thread.close)
    assert shared_riskgate.outcomes(names["request_id"]) == [("IN_DOUBT", "CANCELLED")]
    assert cancelled.is_set()
    with pytest.raises(asyncio.CancelledError):
        await call
