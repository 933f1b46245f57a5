"""A watch outlives default deadlines, broken connections and service restarts, and misses nothing."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import grpc
import pytest
from phylactery.agent.v1 import chat_pb2, event_pb2
from phylactery.riskgate.v1 import approval_pb2
from phylactery_cli.supervisor import Stack, running
from phylactery_client import PhylacteryClient, RiskGateClient, errors

from tests.support.processes.stack import ForkedStack, lasting_ports, relaunch

SECONDS = 60


@pytest.fixture
def stack(tmp_path: Path) -> Iterator[Stack]:
    with running(ForkedStack(tmp_path / "data", lasting_ports())) as started:
        yield started


def event(sequence: int) -> chat_pb2.WatchThreadResponse:
    return chat_pb2.WatchThreadResponse(event=event_pb2.Event(thread_id="t1", sequence=sequence))


async def first(stream, count: int) -> list:
    found = []
    async with aclosing(stream), asyncio.timeout(SECONDS):
        async for one in stream:
            found.append(one)
            if len(found) == count:
                break
    return found


async def test_a_watch_goes_on_after_the_last_event_it_gave_whatever_ended_it(wire, connect, refusal):
    away = refusal(grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")
    wire.answer("WatchThread", [event(5), event(6)], [event(7), away], [away], [event(8)])
    watching = connect(PhylacteryClient).watch_thread("t1", after_sequence=4)
    assert [one.sequence for one in await first(watching, 4)] == [5, 6, 7, 8]
    places = [call.request.after_sequence for call in wire.calls]
    assert (places[0], places[-1]) == (4, 7)
    assert all(one <= other for one, other in pairwise(places))
    assert {call.seconds for call in wire.calls} == {None}


async def test_a_watch_without_reconnecting_ends_where_the_service_ends_it(wire, connect):
    wire.answer("WatchThread", [event(1)])
    watching = connect(PhylacteryClient).watch_thread("t1", reconnect=False)
    assert [one.sequence async for one in watching] == [1]
    assert len(wire.calls) == 1


@pytest.mark.parametrize("code", [grpc.StatusCode.NOT_FOUND, grpc.StatusCode.OUT_OF_RANGE])
async def test_a_watch_that_is_refused_is_not_opened_again(wire, connect, refusal, code):
    wire.answer("WatchThread", [event(1)], [refusal(code, "SOME_REASON")])
    with pytest.raises(errors.PhylacteryError) as caught:
        await first(connect(PhylacteryClient).watch_thread("t1"), 2)
    assert (caught.value.code, len(wire.calls)) == (code, 2)


async def test_a_watch_where_nobody_answers_says_so(unused_target):
    async with PhylacteryClient(unused_target) as client:
        with pytest.raises(errors.UnavailableError):
            await first(client.watch_thread("t1"), 1)


async def test_a_watch_has_the_time_it_was_given_in_all(wire, connect):
    wire.answer("WatchThread", [event(1)])
    with pytest.raises(errors.DeadlineError):
        await first(connect(PhylacteryClient).watch_thread("t1", timeout=0.5), math.inf)


async def test_a_watch_of_approvals_goes_on_after_the_last_change(wire, connect):
    def change(token: str) -> approval_pb2.WatchApprovalsResponse:
        return approval_pb2.WatchApprovalsResponse(resume_token=token)

    wire.answer("WatchApprovals", [change("")], [change("c1")], [change("c2")])
    watching = connect(RiskGateClient).watch_approvals(snapshot=True)
    assert [one.resume_token for one in await first(watching, 3)] == ["", "c1", "c2"]
    asked = [(call.request.snapshot, call.request.resume_token) for call in wire.calls]
    assert asked == [(True, ""), (True, ""), (False, "c1")]


async def test_a_watch_of_approvals_that_could_miss_something_ends_instead(wire, connect):
    wire.answer("WatchApprovals", [])
    assert [one async for one in connect(RiskGateClient).watch_approvals()] == []
    assert len(wire.calls) == 1


@pytest.mark.slow
async def test_an_idle_watch_outlives_a_kill_of_the_agent(stack: Stack):
    async with PhylacteryClient(stack.target("agent")) as client:
        opened = await client.send_message("hello", thread_id="t1")
        watching = client.watch_thread("t1", after_sequence=opened.last_sequence)
        following = asyncio.create_task(first(watching, 1))
        async with asyncio.timeout(SECONDS):
            await client._channel.channel_ready()
        await asyncio.to_thread(stack.kill, "agent")
        await asyncio.to_thread(relaunch, stack, "agent")
        said = await client.send_message("thanks", thread_id="t1")
        [seen] = await following
        assert opened.last_sequence < seen.sequence <= said.last_sequence
