"""Threads across several agents and one PostgreSQL database: watched at one, served and deleted at another."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from grpc import aio
from phylactery.agent.v1 import chat_pb2

from tests.agent.runtime.dispatch.test_replicas import Replicas, replicas_over
from tests.support.agent.system import DONE, SUSPENDED, refused
from tests.support.agent.threads import Watch, delete, listed, watched
from tests.support.servers.postgres import brief_database

ASK = 'añade "línea" a lista.txt'


@pytest.fixture
async def replicas(tmp_path: Path, postgres_url: str) -> AsyncIterator[Replicas]:
    async with replicas_over(tmp_path, brief_database(postgres_url, "phylactery_agent")) as opened:
        await opened.add()
        await opened.add()
        yield opened


@pytest.mark.slow
async def test_a_watch_at_one_replica_shows_what_another_serves_and_goes_on_at_a_third(replicas: Replicas) -> None:
    here, there = replicas.person(0), replicas.person(1)
    first = await here.stream("repite hola")
    async with watched(there) as watch:
        assert await watch.until(first[-1].sequence) == first
        second = await here.stream("repite adiós")
        assert await watch.until(second[-1].sequence) == second
    third = replicas.person(await replicas.add())
    async with watched(third, after=first[-1].sequence) as watch:
        assert await watch.until(second[-1].sequence) == second


@pytest.mark.slow
async def test_a_thread_deleted_at_one_replica_is_gone_at_every_one(replicas: Replicas) -> None:
    here, there = replicas.person(0), replicas.person(1)
    asked = await here.say(ASK)
    assert asked.run.status == SUSPENDED
    watch = Watch(there)
    await watch.until(asked.last_sequence)
    await asyncio.gather(delete(there), delete(here))
    assert (await watch.refusal()).reason == "THREAD_NOT_FOUND"
    with pytest.raises(aio.AioRpcError) as caught:
        await here.thread()
    assert refused(caught.value).reason == "THREAD_NOT_FOUND"
    assert not (await listed(there)).threads
    assert (await there.say("repite hola")).run.status == DONE
    assert (await here.thread()).first_sequence == 1


async def test_of_two_that_are_not_to_wait_at_two_replicas_at_once_none_is_lost(replicas: Replicas) -> None:
    sent = [replicas.person(number % 2).say("repite hola", on_busy=chat_pb2.ON_BUSY_REJECT) for number in range(6)]
    answers = await asyncio.gather(*sent, return_exceptions=True)
    for answer in answers:
        if isinstance(answer, BaseException):
            assert isinstance(answer, aio.AioRpcError)
            assert refused(answer).reason == "THREAD_BUSY"
        else:
            assert answer.run.status == DONE
    served = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len({answer.run.id for answer in served}) == len(served) >= 1
    assert len(replicas.rows("SELECT * FROM agent_inbox")) == len(served)
