"""The task of the current context: the one whose block the code runs in, and never that of another request."""

from __future__ import annotations

import asyncio

import pytest
from phylactery_client import GuardError, current_task

WORDS = "Read minutes.txt"


async def test_inside_its_block_a_task_is_the_current_one_and_after_it_is_not(guard, names):
    with pytest.raises(GuardError, match="no guarded task"):
        current_task()
    async with guard.task(WORDS, **names) as task:
        assert current_task() is task
        assert await asyncio.create_task(_current()) is task
    with pytest.raises(GuardError, match="no guarded task"):
        current_task()


async def _current():
    return current_task()


async def test_requests_served_at_once_each_see_their_own(guard, names):
    entered = asyncio.Barrier(8)

    async def serve(number: int) -> bool:
        async with guard.task(WORDS, thread_id=f"{names['thread_id']}-{number}") as task:
            await entered.wait()
            return current_task() is task

    assert all(await asyncio.gather(*map(serve, range(8))))


@pytest.mark.slow
async def test_interleaved_requests_of_one_context_are_refused(guard, names):
    """Of two open tasks the later one is not simply taken: the call may be the other's."""
    async with guard.task(WORDS, **names) as first:
        second = await guard.begin(WORDS, thread_id="other-thread")
        await second.__aenter__()
        with pytest.raises(GuardError, match="several guarded tasks"):
            current_task()
        assert current_task(names["thread_id"]) is first
        assert current_task("other-thread") is second
        with pytest.raises(GuardError, match="another thread"):
            current_task("third-thread")
        await second.__aexit__(None, None, None)
        assert current_task() is first


async def test_what_outlives_a_request_does_not_act_in_its_name(guard, names):
    ended = asyncio.Event()

    async def later() -> None:
        await ended.wait()
        current_task()

    async with guard.task(WORDS, **names):
        background = asyncio.create_task(later())
        await asyncio.sleep(0)
    ended.set()
    with pytest.raises(GuardError, match="has ended"):
        await background
