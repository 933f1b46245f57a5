"""Serving turns through failures: a lost lease, an error in a node, a failing store, endless interruptions.

The graph is a double with the compiled graph's two methods, because a real one cannot be made to fail on command.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from phylactery_agent.checkpoints.saver import Checkpoints
from phylactery_agent.ports import GateUnavailableError, LeaseLostError, MemoryUnavailableError
from phylactery_agent.runtime.dispatch.leases import RunCancelledError
from phylactery_agent.runtime.storage.records import Claim, Lease
from phylactery_agent.runtime.storage.sealing import Sealer
from phylactery_agent.runtime.turn.server import MAX_ATTEMPTS, ActiveTimeError
from phylactery_chassis.errors import Unavailable

from tests.support.agent.bench import STATE, Bench
from tests.support.agent.stores import ANA, BOUND, T1, Stores, call, runner_of


async def test_a_lost_lease_stops_the_turn_at_once_and_writes_nothing(stores: Stores, bench: Bench) -> None:
    stopped = asyncio.Event()

    async def long(_given: Any, _context: Any) -> Mapping[str, Any]:
        try:
            stores.pass_time(31)
            await stores.claimed(holder="thief")
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return STATE

    bench.graph.work = long
    turn = await stores.accepted()
    with pytest.raises(LeaseLostError):
        await bench.server(heartbeat_seconds=0.01).serve(await stores.claimed())
    assert stopped.is_set()
    assert (await stores.inbox.get(turn.turn_id)).handled is False
    assert [event.kind for event in await stores.log.of_turn(turn.turn_id)] == ["run_started"]


async def test_a_renewed_lease_outlives_its_thirty_seconds(
    stores: Stores, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewed = asyncio.Event()
    renew = stores.leases.renew

    async def watched(lease: Lease, *, active_us: int = 0) -> None:
        begun = stores.clock.now_us()
        await renew(lease, active_us=active_us)
        if begun == stores.clock.now_us():
            renewed.set()

    async def long(_given: Any, context: Any) -> Mapping[str, Any]:
        for _ in range(3):
            renewed.clear()
            stores.pass_time(20)
            await renewed.wait()
        await context.ledger.check_fence()
        return STATE

    bench.graph.work = long
    monkeypatch.setattr(stores.leases, "renew", watched)
    turn = await stores.accepted()
    await bench.server(heartbeat_seconds=0.01).serve(await stores.claimed())
    assert (await stores.inbox.get(turn.turn_id)).run_status == "done"


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (RuntimeError("the code is K7Q2M9XD"), "INTERNAL_ERROR"),
        (GateUnavailableError("down"), "GATE_UNAVAILABLE"),
        (MemoryUnavailableError("down"), "MEMORY_UNAVAILABLE"),
    ],
)
async def test_a_fault_in_the_graph_ends_the_turn_with_an_answer(
    stores: Stores, bench: Bench, error: Exception, reason: str
) -> None:
    async def fail(_given: Any, _context: Any) -> Mapping[str, Any]:
        raise error

    bench.graph.work = fail
    turn = await stores.accepted()
    await bench.server().serve(await stores.claimed())
    stored = await stores.inbox.get(turn.turn_id)
    assert (stored.run_status, stored.run_reason) == ("failed", reason)
    assert stored.reply_text
    assert "K7Q2M9XD" not in stored.reply_text


async def test_a_fault_after_an_effect_began_leaves_it_in_doubt_and_reported(stores: Stores, bench: Bench) -> None:
    async def fail(_given: Any, context: Any) -> Mapping[str, Any]:
        await context.ledger.propose(call(), plan_step="s1")
        await context.ledger.start("c1", execution_id="ex_1", effect_key="k", bound=BOUND)
        raise RuntimeError("a fault of ours")

    bench.graph.work = fail
    turn = await stores.accepted()
    await bench.server().serve(await stores.claimed())
    assert (await stores.inbox.get(turn.turn_id)).run_reason == "INTERNAL_ERROR"
    [left] = await stores.runs.tool_calls(turn.run_id)
    assert (left.state, left.error_code) == ("in_doubt", "RUN_ENDED")
    await bench.delivery.flush("outcome", T1)
    assert bench.services.told == [("ex_1", "IN_DOUBT")]


@pytest.mark.parametrize(("status", "kept"), [("done", 0), ("failed", 0), ("suspended", 1)])
async def test_the_state_of_a_run_is_kept_exactly_as_long_as_the_run_can_go_on(
    stores: Stores, bench: Bench, status: str, kept: int
) -> None:
    async def end(_given: Any, _context: Any) -> Mapping[str, Any]:
        config: RunnableConfig = {"configurable": {"thread_id": turn.run_id}}
        checkpoint = {"v": 1, "id": "c1", "ts": "", "channel_values": {}, "channel_versions": {}, "versions_seen": {}}
        await Checkpoints(stores.database).aput(config, checkpoint, {}, {})
        return {**STATE, "run_status": status}

    bench.graph.work = end
    turn = await stores.accepted()
    await bench.server().serve(await stores.claimed())
    assert stores.rows("agent_checkpoints", "thread_id") == [(turn.run_id,)] * kept


async def test_a_run_whose_state_is_gone_says_so_and_leaves_nothing_to_approve(stores: Stores, bench: Bench) -> None:
    await stores.accepted()
    claim = await stores.claimed()
    await stores.ledger(claim.lease).propose(call(), plan_step="1")
    await stores.end(claim, "suspended", approval_id="ap_waiting1")
    bench.graph.kept = {}
    turn = await stores.accepted("request-2", "APROBAR ap_waiting1 abcdef")
    await bench.server().serve(await stores.claimed())
    ended = await stores.inbox.get(turn.turn_id)
    assert (ended.run_id, ended.run_status, ended.run_reason) == (claim.run.run_id, "failed", "STATE_LOST")
    [denied] = await stores.runs.tool_calls(claim.run.run_id)
    assert (denied.state, denied.error_code) == ("denied", "STATE_LOST")
    assert ("withdrawal", claim.run.run_id) in stores.rows("agent_outbox", "kind, run_id")


async def test_a_state_that_says_no_ending_is_a_fault_of_ours(stores: Stores, bench: Bench) -> None:
    async def endless(_given: Any, _context: Any) -> Mapping[str, Any]:
        return {**STATE, "run_status": "running"}

    bench.graph.work = endless
    turn = await stores.accepted()
    await bench.server().serve(await stores.claimed())
    assert (await stores.inbox.get(turn.turn_id)).run_reason == "INTERNAL_ERROR"


async def test_a_message_that_is_interrupted_too_often_is_given_up(stores: Stores, bench: Bench) -> None:
    turn = await stores.accepted()
    for _ in range(MAX_ATTEMPTS):
        await stores.claimed()
        await stores.claims.release_all()
    await bench.server().serve(await stores.claimed())
    stored = await stores.inbox.get(turn.turn_id)
    assert (stored.run_status, stored.run_reason, bench.graph.calls) == ("dead", "TOO_MANY_ATTEMPTS", 0)


async def test_the_code_of_a_reply_reaches_the_graph_and_a_replaced_key_costs_the_code_alone(
    stores: Stores, bench: Bench
) -> None:
    for number, sealer in enumerate((bench.sealer, Sealer(b"\x08" * 32))):
        sealed = sealer.seal("K7Q2M9XD", turn_id=f"tu_{number}")
        await stores.accepted(f"request-{number}", turn_id=f"tu_{number}", sealed_code=sealed)
        await bench.server().serve(await stores.claimed())
    assert [context.reply_code for context in bench.graph.contexts] == ["K7Q2M9XD", ""]


async def test_a_failing_store_makes_the_thread_wait_and_the_turn_is_served_later(stores: Stores, bench: Bench) -> None:
    async def fail_once(_given: Any, _context: Any) -> Mapping[str, Any]:
        if bench.graph.calls == 1:
            raise Unavailable("STORE_UNAVAILABLE", "the disk is full")
        return STATE

    bench.graph.work = fail_once
    turn = await stores.accepted()
    runner = runner_of(stores, bench.server().serve)
    await runner.start()
    with stores.news.listen(T1) as news:
        while True:
            news.clear()
            if (await stores.inbox.get(turn.turn_id)).handled:
                break
            await news.wait()
    await runner.stop()
    assert bench.graph.calls == 2


async def test_a_fault_nobody_thought_of_does_not_leave_a_thread_behind(stores: Stores) -> None:
    served = asyncio.Event()
    faults = [RuntimeError("a fault of ours")]

    async def serve(claim: Claim) -> None:
        if faults:
            raise faults.pop()
        await stores.end(claim)
        served.set()

    turn = await stores.accepted()
    runner = runner_of(stores, serve)
    await runner.start()
    async with asyncio.timeout(60):
        await served.wait()
    await runner.stop()
    assert (await stores.inbox.get(turn.turn_id)).handled


async def test_threads_are_served_side_by_side_up_to_the_bound(stores: Stores, bench: Bench) -> None:
    inside, most = 0, 0
    together = asyncio.Event()

    async def meet(_given: Any, _context: Any) -> Mapping[str, Any]:
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        if inside == 3:
            together.set()
        await together.wait()
        inside -= 1
        return STATE

    bench.graph.work = meet
    for number in range(6):
        await stores.accepted(f"request-{number}", thread_id=f"t{number}")
    runner = runner_of(stores, bench.server().serve, max_concurrent=3)
    await runner.start()
    await runner.idle()
    assert (most, bench.graph.calls) == (3, 6)


async def test_a_run_that_was_served_as_long_as_one_may_be_ends_before_its_next_node(
    stores: Stores, bench: Bench
) -> None:
    async def next_node(_given: Any, context: Any) -> Mapping[str, Any]:
        context.trail.begin()
        return STATE

    bench.graph.work, bench.active_seconds = next_node, 60.0
    turn = await stores.accepted()
    claim = await stores.claimed()
    spent = replace(claim, run=replace(claim.run, active_us=60_000_000))
    await bench.server().serve(spent)
    assert (await stores.inbox.get(turn.turn_id)).run_reason == "ACTIVE_TIME_LIMIT"
    assert (await stores.runs.get(ANA, claim.run.run_id)).active_us >= 60_000_000


async def test_the_time_a_run_was_served_outlives_the_process_that_served_it(stores: Stores, bench: Bench) -> None:
    beaten = asyncio.Event()
    renew = stores.leases.renew

    async def noted(lease: Lease, *, active_us: int = 0) -> None:
        await renew(lease, active_us=active_us)
        beaten.set()

    async def dies(_given: Any, _context: Any) -> Mapping[str, Any]:
        await beaten.wait()
        raise Unavailable("STORE_UNAVAILABLE", "as if it died")

    bench.graph.work = dies
    bench.stores.leases.renew = noted  # type: ignore[method-assign]
    await stores.accepted()
    with pytest.raises(Unavailable):
        await bench.server(heartbeat_seconds=0.01).serve(await stores.claimed())
    [(active_us,)] = stores.rows("agent_runs", "active_us")
    assert active_us > 0


async def test_a_turn_that_cannot_be_served_is_tried_again_with_growing_pauses_kept_on_disk(stores: Stores) -> None:
    async def fails(_claim: Claim) -> None:
        raise Unavailable("STORE_UNAVAILABLE", "the disk is full")

    await stores.accepted()
    runner = runner_of(stores, fails, retry_seconds=1000)
    await runner.start()
    await runner.idle()
    await runner.stop()
    [(status, attempt, owner)] = stores.rows("agent_runs", "status, attempt, lease_owner")
    assert (status, attempt, owner) == ("running", 1, "")
    again = runner_of(stores, fails, holder="after a restart")
    await again.start()
    await again.idle()
    assert stores.rows("agent_runs", "attempt") == [(1,)]  # it is not due yet
    await again.stop()
    stores.pass_time(61)
    assert (await stores.claimed()).attempt == 2


async def test_a_stop_gives_turns_back_and_is_no_failed_attempt(stores: Stores) -> None:
    begun = asyncio.Event()

    async def long(_claim: Claim) -> None:
        begun.set()
        await asyncio.Event().wait()

    await stores.accepted()
    runner = runner_of(stores, long)
    await runner.start()
    await begun.wait()
    await runner.stop()
    assert stores.rows("agent_runs", "status, attempt, lease_owner, due_us = 0 OR lease_owner = ''") == [
        ("running", 0, "", True)
    ]
    assert (await stores.claimed(holder="another")).attempt == 1


@pytest.mark.parametrize(
    "fault", [RunCancelledError("x"), GateUnavailableError(), MemoryUnavailableError(), ActiveTimeError(), ValueError()]
)
async def test_an_answer_within_a_run_of_which_nothing_is_kept_is_dropped_however_its_turn_ends(
    stores: Stores, bench: Bench, fault: Exception
) -> None:
    await stores.accepted("request-1", "escribe algo, no guardes esto", do_not_store=True)
    await stores.end(await stores.claimed(), "suspended", reason="NEED_INFO", do_not_store=True)
    await stores.accepted("request-2", "mi PIN es 4711")

    async def broken(_given: Any, _context: Any) -> Mapping[str, Any]:
        raise fault

    bench.graph.work = broken
    await bench.server().serve(await stores.claimed())
    assert stores.rows("agent_inbox", "state, text") == [("handled", b"")] * 2
    assert [kind for (kind,) in stores.rows("agent_outbox", "kind") if kind in {"transcript", "memory"}] == []
    await stores.accepted("request-3", "hola")  # the next run is another one
    bench.graph.work = None
    await bench.server().serve(await stores.claimed())
    assert stores.rows("agent_inbox", "text")[-1] == (b"hola",)
    assert [kind for (kind,) in stores.rows("agent_outbox", "kind") if kind == "transcript"] == ["transcript"]
