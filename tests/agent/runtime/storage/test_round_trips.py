"""Database round trips of a turn and of an idle agent."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from phylactery.agent.v1 import chat_pb2
from phylactery_chassis.util.ids import new_id

from tests.agent.runtime.dispatch.test_replicas import Replicas, replicas_over
from tests.support.agent.system import DONE
from tests.support.databases.invariants import at_rest
from tests.support.databases.round_trips import Counted, counted
from tests.support.servers.postgres import create_database

ENDS_SECONDS = 120.0
MOST_OF_A_TURN = 85
"""76 were measured, idle looks among them; 129 where every statement, BEGIN, COMMIT and ping is asked by itself."""
IDLE_SECONDS = 10.0
MOST_A_SECOND = 8
"""What an agent with nothing to do asks: about six were measured, sixteen before."""


async def say(replicas: Replicas, text: str) -> None:
    person = replicas.person(0)
    request = chat_pb2.SendMessageRequest(request_id=new_id("req"), thread_id="t1", text=text)
    answer = await person.chat.SendMessage(request, metadata=person.metadata, timeout=ENDS_SECONDS)
    assert answer.run.status == DONE


async def rest(url: str) -> None:
    async with asyncio.timeout(ENDS_SECONDS):
        while not at_rest(url):  # noqa: ASYNC110 - only the database knows
            await asyncio.sleep(0.1)


@pytest.mark.slow
async def test_an_idle_agent_asks_its_database_a_few_questions_and_a_turn_some(
    tmp_path: Path, postgres_url: str
) -> None:
    near_url = create_database(postgres_url, new_id("ways"))
    folder = str(sa.make_url(near_url).query["host"])
    with tempfile.TemporaryDirectory(prefix="phylactery-ways-") as near, counted(Path(folder), Path(near)) as counts:
        async with replicas_over(tmp_path, near_url) as replicas:
            replicas.url = near_url.replace(folder, near)
            await replicas.add(approval_poll_seconds=3_600)
            for _ in range(2):
                await say_and_rest(replicas, near_url)
            idle, seconds = await asked(counts, asyncio.sleep(IDLE_SECONDS))
            assert idle <= MOST_A_SECOND * seconds, counts.said
            turn, seconds = await asked(counts, say_and_rest(replicas, near_url))
            assert turn <= MOST_OF_A_TURN + MOST_A_SECOND * seconds, counts.said


async def say_and_rest(replicas: Replicas, url: str) -> None:
    await say(replicas, "hello")
    await rest(url)


async def asked(counts: Counted, work: Coroutine[Any, Any, None]) -> tuple[int, float]:
    """Return how often something is asked during the work, and how many seconds that took."""
    counts.reset()
    began = time.monotonic()
    await work
    return counts.round_trips, time.monotonic() - began
