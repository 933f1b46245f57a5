"""A task that pauses in a loop ends when it is cancelled, whatever happens at that moment."""

from __future__ import annotations

import asyncio

import pytest
from phylactery_chassis.util.clock import pause


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_right_after_the_news_is_not_lost(turns: int):
    news = asyncio.Event()

    async def work() -> None:
        while True:
            await pause(news, 3_600)
            news.clear()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    news.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=20)
    assert done
    assert task.cancelled()


async def test_it_ends_with_the_news_or_the_time():
    news = asyncio.Event()
    await pause(news, 0.001)
    assert not news.is_set()
    news.set()
    async with asyncio.timeout(20):
        await pause(news, None)
        await pause(news, 3_600)
