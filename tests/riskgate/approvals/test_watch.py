"""WatchApprovals: every change once and in order, from whichever replica, and nothing after the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.riskgate.v1 import approval_pb2, types_pb2
from phylactery_riskgate.approvals import watch as watching
from phylactery_riskgate.store import approvals

SECONDS = 60
WIPE = ("wipe", '{"path":"x"}')
Message = approval_pb2.WatchApprovalsResponse


class Watch:
    """One stream, read as a client reads it. Changes of one moment come in no order but that of each approval."""

    def __init__(self, person: Any, **asked: Any) -> None:
        request = approval_pb2.WatchApprovalsRequest(**asked)
        self.call = person.approvals.WatchApprovals(request, metadata=person.metadata)
        self.seen: list[Message] = []

    async def next(self) -> Message:
        message = await asyncio.wait_for(self.call.read(), SECONDS)
        assert message is not aio.EOF, "the stream ended"
        self.seen.append(message)
        return message

    async def states(self, count: int) -> list[tuple[str, str]]:
        """Read so many changes and return each as (tool_call_id, state)."""
        return [named(await self.next()) for _ in range(count)]


def named(message: Message) -> tuple[str, str]:
    state = types_pb2.ApprovalState.Name(message.approval.state).removeprefix("APPROVAL_STATE_")
    return message.approval.tool_call_id, state


@asynccontextmanager
async def watching_as(person: Any, **asked: Any) -> AsyncIterator[Watch]:
    """Open a stream that begins with a snapshot, and read up to its end, unless it goes on somewhere."""
    fresh = "resume_token" not in asked and "snapshot" not in asked
    watch = Watch(person, **asked, snapshot=True) if fresh else Watch(person, **asked)
    try:
        while fresh and not (await watch.next()).snapshot_end:
            pass
        yield watch
    finally:
        watch.call.cancel()


async def test_every_change_of_ones_approvals_arrives_once_and_in_order_without_codes(gate, ana, call):
    async with watching_as(ana) as watch:
        approval = (await ana.evaluate(call(call_id="c1"))).approval
        await ana.approve(approval)
        permit = (await ana.evaluate(call(call_id="c1"), approval=approval.id)).permit
        await ana.redeem(permit, call(call_id="c1"))
        gate.clock.advance(1)
        other = '{"path":"b.txt","content":"x"}'
        second = (await ana.evaluate(call(arguments=other, call_id="c2"))).approval
        await ana.reject(second.id)
        gate.clock.advance(1)
        third = (await ana.evaluate(call(call_id="c3"))).approval
        await ana.cancel(third.id)
        assert await watch.states(7) == [
            ("c1", "PENDING"),
            ("c1", "APPROVED"),
            ("c1", "REDEEMED"),
            ("c2", "PENDING"),
            ("c2", "REJECTED"),
            ("c3", "PENDING"),
            ("c3", "CANCELLED"),
        ]
    assert {message.approval.code for message in watch.seen} == {""}
    assert [message.approval.decided_by for message in watch.seen[1:4]] == ["", "ana", "ana"]
    tokens = [message.resume_token for message in watch.seen]
    assert len(set(tokens)) == len(tokens)


async def test_a_snapshot_shows_what_is_open_oldest_first_and_then_the_changes(gate, ana, call):
    for number in range(3):
        gate.clock.advance(1)
        await ana.evaluate(call(arguments=f'{{"path":"{number}.txt","content":"x"}}', call_id=f"c{number}"))
    done = (await ana.list()).approvals[-1]
    await ana.reject(done.id)
    async with watching_as(ana) as watch:
        assert [named(message) for message in watch.seen[:-1]] == [("c1", "PENDING"), ("c2", "PENDING")]
        assert {message.resume_token for message in watch.seen[:-1]} == {""}
        assert watch.seen[-1].resume_token
        await ana.cancel(watch.seen[0].approval.id)
        assert await watch.states(1) == [("c1", "CANCELLED")]


@pytest.mark.slow
async def test_a_large_snapshot_comes_in_pages_and_no_change_of_it_comes_twice(
    make_gate, bundle_with, call, monkeypatch
):
    monkeypatch.setattr(watching, "_PAGE", 3)
    gate = await make_gate(bundle=bundle_with(max_pending_per_thread=50, max_pending_per_user=50))
    ana = gate.person("ana")
    asked = [call(call_id=f"c{number}") for number in range(10)]
    for one in asked:
        await ana.evaluate(one)
    async with watching_as(ana) as watch:
        assert len(watch.seen) == 11
        for message in watch.seen[:-1]:
            await ana.cancel(message.approval.id)
        changes = await watch.states(10)
    assert {state for _, state in changes} == {"CANCELLED"}
    assert len(set(changes)) == 10


@pytest.mark.slow
async def test_a_stream_that_broke_goes_on_where_it_ended_and_misses_nothing(gate, ana, call):
    async with watching_as(ana) as watch:
        approval = (await ana.evaluate(call())).approval
        token = (await watch.next()).resume_token
    await ana.approve(approval)
    await ana.cancel(approval.id)
    async with watching_as(ana, resume_token=token) as again:
        assert await again.states(2) == [("c1", "APPROVED"), ("c1", "CANCELLED")]
    async with watching_as(ana, resume_token=again.seen[0].resume_token) as third:
        assert await third.states(1) == [("c1", "CANCELLED")]


async def test_changes_of_long_ago_are_dropped_and_no_token_passes_over_them_in_silence(
    make_gate, shared_database, call, refused, monkeypatch
):
    monkeypatch.setattr(approvals, "_AT_ONCE", 2)
    gate = await make_gate(database_url=shared_database)
    ana, zoe = gate.person("ana"), gate.person("zoe")
    async with watching_as(ana) as watch:
        await ana.evaluate(call(call_id="seen"))
        old = (await watch.next()).resume_token
    for number in range(4):
        await ana.evaluate(call(call_id=f"c{number}"))
    await zoe.evaluate(call(call_id="of-zeta"))
    gate.clock.advance(watching.KEEP_DAYS * 86_400)
    assert await gate.riskgate.watches.prune() == 0
    gate.clock.advance(1)
    assert await gate.riskgate.watches.prune() == 4
    assert await gate.riskgate.watches.prune() == 0
    assert gate.count("approval_changes") == 2, "the newest of each tenant stays, so that places go on"
    lost = await refused(anext(aiter(Watch(ana, resume_token=old).call)))
    assert (lost.reason, lost.fields) == ("INVALID_REQUEST", ["resume_token"])
    assert f"{watching.KEEP_DAYS} days" in lost.message
    async with watching_as(ana) as fresh:
        token = fresh.seen[-1].resume_token
        new = (await ana.evaluate(call(call_id="new"))).approval
        await ana.cancel(new.id)
        while named(await fresh.next()) != ("new", "CANCELLED"):
            pass
    async with watching_as(ana, resume_token=token) as again:
        while named(await again.next()) != ("new", "CANCELLED"):
            pass
    assert [named(one) for one in again.seen] == [named(one) for one in fresh.seen[1:]]


async def test_time_ends_an_approval_once_for_every_stream_and_the_log_says_that_time_did(gate, ana, call):
    carla = gate.person("carla")
    async with watching_as(ana) as mine, watching_as(carla) as theirs:
        await ana.evaluate(call())
        gate.clock.advance(601)
        for watch in (mine, theirs):
            assert await watch.states(2) == [("c1", "PENDING"), ("c1", "EXPIRED")]
    closed = gate.records("approval_closed")
    assert [(record["state"], record["subject"]) for record in closed] == [("EXPIRED", "riskgate")]


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_clock_that_jumps_an_hour_reorders_nothing(gate, ana, call, hours):
    async with watching_as(ana) as watch:
        approval = (await ana.evaluate(call())).approval
        gate.clock.advance(hours * 3_600)
        if hours < 0:
            await ana.approve(approval)
            await ana.cancel(approval.id)
            expected = ["PENDING", "APPROVED", "CANCELLED"]
        else:
            expected = ["PENDING", "EXPIRED"]
        assert [state for _, state in await watch.states(len(expected))] == expected


async def test_a_vote_that_is_not_the_last_is_a_change_too(gate, ana, call):
    async with watching_as(ana) as watch:
        approval = (await ana.evaluate(call(*WIPE))).approval
        await gate.person("dora").approve(approval)
        await gate.person("carla").approve(approval)
        await watch.states(3)
    found = [(named(message)[1], message.approval.votes) for message in watch.seen[1:]]
    assert found == [("PENDING", 0), ("PENDING", 1), ("APPROVED", 2)]


async def test_nobody_sees_what_is_not_theirs_and_an_approver_sees_their_tenant(gate, ana, call):
    async with (
        watching_as(gate.person("ben")) as bens,
        watching_as(gate.person("zoe")) as other_tenant,
        watching_as(gate.through_agent("ana")) as through_agent,
        watching_as(gate.person("dora")) as approver,
    ):
        await ana.evaluate(call(call_id="anas"))
        await gate.person("ben").evaluate(call(call_id="bens"))
        await gate.person("zoe").evaluate(call(call_id="zoes"))
        assert await bens.states(1) == [("bens", "PENDING")]
        assert await other_tenant.states(1) == [("zoes", "PENDING")]
        assert await through_agent.states(1) == [("anas", "PENDING")]
        # of different approvals at one moment, either may come first
        assert sorted(await approver.states(2)) == [("anas", "PENDING"), ("bens", "PENDING")]


async def test_filters_keep_a_state_a_thread_or_one_approval(gate, ana, call):
    first = (await ana.evaluate(call(call_id="c1"))).approval
    async with (
        watching_as(ana, state=types_pb2.APPROVAL_STATE_CANCELLED) as cancelled,
        watching_as(ana, thread_id="t2") as thread,
        watching_as(ana, approval_id=first.id) as only,
    ):
        assert [len(watch.seen) for watch in (cancelled, thread, only)] == [1, 1, 2]
        second = (await ana.evaluate(call(call_id="c2"), thread="t2")).approval
        await ana.cancel(second.id)
        gate.clock.advance(1)
        await ana.cancel(first.id)
        assert await cancelled.states(2) == [("c2", "CANCELLED"), ("c1", "CANCELLED")]
        assert await thread.states(2) == [("c2", "PENDING"), ("c2", "CANCELLED")]
        assert await only.states(1) == [("c1", "CANCELLED")]


@pytest.mark.parametrize("token", ["nonsense", "WzEsInIiLDFd", "WyJhcHByb3ZhbHMiLDk5OTldCg"])
async def test_a_token_that_was_never_given_is_refused(gate, ana, refused, token):
    refusal = await refused(Watch(ana, resume_token=token).call.read())
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["resume_token"])


async def test_a_snapshot_and_a_token_contradict_each_other(gate, ana, refused):
    refusal = await refused(Watch(ana, resume_token="x", snapshot=True).call.read())
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["snapshot"])


@pytest.mark.slow
async def test_a_consumer_that_reads_nothing_loses_nothing_and_holds_nobody_up(make_gate, bundle_with, call):
    long = '{"path":"notes.txt","content":"' + "x" * 60_000 + '"}'
    gate = await make_gate(
        bundle=bundle_with(max_pending_per_thread=1_000, max_pending_per_user=1_000, max_asked_per_user_per_hour=1_000)
    )
    ana = gate.person("ana")
    async with watching_as(ana) as slow, watching_as(ana) as quick:
        for number in range(150):
            await ana.evaluate(call(arguments=long, call_id=f"c{number}"))
        expected = [(f"c{number}", "PENDING") for number in range(150)]
        assert sorted(await quick.states(150)) == sorted(expected)
        assert sorted(await slow.states(150)) == sorted(expected)


async def test_one_identity_has_so_many_streams_and_a_closed_one_makes_room(gate, ana, refused, monkeypatch):
    monkeypatch.setattr(watching, "MAX_WATCHES", 2)
    async with watching_as(ana), watching_as(ana):
        refusal = await refused(Watch(ana).call.read())
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_WATCHES")
        assert refusal.metadata == {"limit": "2"}
        async with watching_as(gate.person("ben")):
            pass
    await until(lambda: not gate.riskgate.watches._open)
    async with watching_as(ana):
        pass


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what the server does once it notices that a client hung up."""
    async with asyncio.timeout(SECONDS):
        while not condition():  # noqa: ASYNC110 - a hang-up is no event of ours
            await asyncio.sleep(0.01)


async def test_nothing_runs_on_once_nobody_watches(gate, ana):
    async with watching_as(ana):
        assert set(gate.riskgate.watches._tenants) == {"acme"}
    await until(lambda: not gate.riskgate.watches._tenants)


async def test_a_server_that_stops_ends_every_stream_without_an_error_and_at_once(make_gate, call):
    gate = await make_gate()
    watch = Watch(gate.person("ana"), snapshot=True)
    assert (await watch.next()).snapshot_end
    ending = asyncio.create_task(gate.server.stop(drain_seconds=600))
    assert await asyncio.wait_for(watch.call.read(), 60) is aio.EOF
    assert await watch.call.code() is grpc.StatusCode.OK
    await ending
    again = await make_gate()
    await again.person("ana").evaluate(call())
    async with watching_as(again.person("ana"), resume_token=watch.seen[0].resume_token) as goes_on:
        assert await goes_on.states(1) == [("c1", "PENDING")]


async def test_a_store_that_fails_ends_the_stream_with_a_reason(gate, ana, refused):
    async with watching_as(ana) as watch:
        gate.database.close()
        refusal = await refused(asyncio.wait_for(watch.call.read(), SECONDS))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.UNAVAILABLE, "STORE_UNAVAILABLE")


async def test_two_replicas_show_each_others_changes_all_in_one_order(make_gate, bundle_with, shared_database, call):
    bundle = bundle_with(max_pending_per_thread=200, max_pending_per_user=200, max_asked_per_user_per_hour=200)
    gates = [await make_gate("data", database_url=shared_database, bundle=bundle) for _ in range(2)]
    people = [gate.person("ana") for gate in gates]
    async with watching_as(people[0]) as one, watching_as(people[1]) as two:

        async def live(number: int) -> None:
            here, there = people[number % 2], people[(number + 1) % 2]
            approval = (await here.evaluate(call(call_id=f"c{number}"))).approval
            await there.approve(approval)
            await here.cancel(approval.id)

        await asyncio.gather(*(live(number) for number in range(30)))
        seen = [await watch.states(90) for watch in (one, two)]
    assert seen[0] == seen[1]
    for number in range(30):
        assert [state for name, state in seen[0] if name == f"c{number}"] == ["PENDING", "APPROVED", "CANCELLED"]


async def test_time_ends_an_approval_once_though_two_replicas_watch(make_gate, shared_database, call):
    gates = [await make_gate("data", database_url=shared_database) for _ in range(2)]
    async with watching_as(gates[0].person("ana")) as one, watching_as(gates[1].person("ana")) as two:
        for number in range(4):
            await gates[number % 2].person("ana").evaluate(call(call_id=f"c{number}"))
        await one.states(4)
        await two.states(4)
        for gate in gates:
            gate.clock.advance(601)
        ends = [sorted(await watch.states(4)) for watch in (one, two)]
    assert ends[0] == ends[1] == [(f"c{number}", "EXPIRED") for number in range(4)]
    assert len(gates[0].records("approval_closed")) == 4


async def test_two_approvers_at_once_on_two_replicas_approve_exactly_once(make_gate, shared_database, call):
    gates = [await make_gate("data", database_url=shared_database) for _ in range(2)]
    ana = gates[0].person("ana")
    async with watching_as(ana) as watch:
        for number in range(5):
            approval = (await ana.evaluate(call(*WIPE, f"c{number}"))).approval
            done = await asyncio.gather(
                gates[0].person("dora").approve(approval), gates[1].person("carla").approve(approval)
            )
            assert sorted(one.state for one in done) == [
                types_pb2.APPROVAL_STATE_PENDING,
                types_pb2.APPROVAL_STATE_APPROVED,
            ]
        changes = await watch.states(15)
    assert [state for _, state in changes].count("APPROVED") == 5
    answered = [(record["tool_call_id"], record["state"]) for record in gates[0].records("approval_answered")]
    assert sorted(answered) == sorted((f"c{n}", state) for n in range(5) for state in ("PENDING", "APPROVED"))
