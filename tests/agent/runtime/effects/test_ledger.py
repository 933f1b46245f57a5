"""The ledger, the outbound log, leases and the outbox, on a real SQLite file."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from dataclasses import replace
from typing import Any

import pytest
from phylactery_agent.ports import LeaseLostError, ProposedCall, Told
from phylactery_agent.ports.effects import IllegalTransitionError
from phylactery_agent.runtime.storage.records import Claim

from tests.support.agent.stores import ANA, BOUND, T1, Stores, call, sha


async def test_an_effect_goes_from_proposed_to_finished_and_queues_its_report(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    await ledger.finish("c1", arguments_json="{}", status="success", output="ñandú", error_code="")
    row = await ledger.find("c1")
    assert row is not None
    assert (row.state, row.execution_id, row.effect_key, row.output) == ("finished", "ex_1", "k1", "ñandú")
    [parcel] = await stores.outbox.waiting("outcome", T1)
    assert parcel.payload == {
        "execution_id": "ex_1",
        "outcome": "SUCCEEDED",
        "result_hash": "sha256:" + hashlib.sha256("ñandú".encode()).hexdigest(),
        "result_size": 5,
        "error_code": "",
    }


async def test_a_run_has_read_once_a_tool_but_remember_was_begun(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    assert not await ledger.has_read()
    await ledger.propose(call("c0", "remember"), plan_step="s1")
    await ledger.start("c0", execution_id="ex_0", effect_key="k0", bound=replace(BOUND, tool="remember"))
    await ledger.propose(call(), plan_step="s1")
    assert not await ledger.has_read()
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    assert await ledger.has_read()


async def test_what_other_runs_of_the_conversation_came_to_is_known_and_no_failure_of_theirs(
    stores: Stores, claim: Claim
) -> None:
    ledger = stores.ledger(claim.lease)
    for tool_call_id, tool, status in (("c1", "write_file", "success"), ("c2", "send_email", "error")):
        await ledger.propose(call(tool_call_id, tool), plan_step="s1")
        await ledger.start(tool_call_id, execution_id=f"ex_{tool_call_id}", effect_key=f"k_{tool_call_id}", bound=BOUND)
        await ledger.finish(tool_call_id, arguments_json="{}", status=status, output="", error_code="")
    assert list(await ledger.done_before()) == []
    await stores.end(claim, "done")
    await stores.accepted("request-2")
    later = stores.ledger((await stores.claimed()).lease)
    assert list(await later.done_before()) == ["write_file"]


async def test_the_same_step_again_changes_nothing(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    for _ in range(2):
        await ledger.propose(call(), plan_step="s1")
    for _ in range(2):
        await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    for output in ("first", "second"):
        await ledger.finish("c1", arguments_json="{}", status="success", output=output, error_code="")
    row = await ledger.find("c1")
    assert row is not None
    assert row.output == "first"
    assert len(await stores.outbox.waiting("outcome", T1)) == 1


@pytest.mark.parametrize(
    "other",
    [call(tool="read_file"), replace(call(), canonical_args='{"path":"b"}', args_hash=sha('{"path":"b"}'))],
)
async def test_another_call_under_the_id_of_one_is_refused_and_changes_nothing(
    stores: Stores, claim: Claim, other: ProposedCall
) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    with pytest.raises(IllegalTransitionError):
        await ledger.propose(other, plan_step="s1")
    row = await ledger.find("c1")
    assert row is not None
    assert (row.tool, row.args_hash, row.state) == ("write_file", call().args_hash, "proposed")


async def test_the_same_call_may_be_proposed_again_once_its_arguments_were_bound_otherwise(
    stores: Stores, claim: Claim
) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=replace(BOUND, args_hash=sha("{}")))
    await ledger.propose(call(), plan_step="s1")
    row = await ledger.find("c1")
    assert row is not None
    assert (row.state, row.args_hash) == ("started", sha("{}"))


async def test_a_second_execution_of_the_same_call_is_refused(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    with pytest.raises(IllegalTransitionError):
        await ledger.start("c1", execution_id="ex_2", effect_key="k1", bound=BOUND)
    row = await ledger.find("c1")
    assert row is not None
    assert row.execution_id == "ex_1"


async def test_nothing_finishes_that_was_not_started(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    for step in (
        ledger.finish("c1", arguments_json="{}", status="success", output="", error_code=""),
        ledger.doubt("c1", error_code="X"),
        ledger.finish("never-proposed", arguments_json="{}", status="success", output="", error_code=""),
    ):
        with pytest.raises(IllegalTransitionError):
            await step
    assert await stores.outbox.waiting("outcome", T1) == []


async def test_a_denied_call_cannot_start(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.deny("c1", error_code="POLICY_FORBID")
    with pytest.raises(IllegalTransitionError):
        await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)


async def test_doubt_is_recorded_and_reported(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    await ledger.doubt("c1", error_code="CRASHED")
    row = await ledger.find("c1")
    assert row is not None
    assert (row.state, row.error_code) == ("in_doubt", "CRASHED")
    [parcel] = await stores.outbox.waiting("outcome", T1)
    assert parcel.payload["outcome"] == "IN_DOUBT"


async def test_an_evicted_output_leaves_the_ledger(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    await ledger.finish("c1", arguments_json="{}", status="success", output="x" * 12_000, error_code="")
    await ledger.evicted("c1", pointer="out_1", size_chars=12_000)
    row = await ledger.find("c1")
    assert row is not None
    assert (row.output, row.status) == (None, "evicted")
    [shown] = await stores.runs.tool_calls(claim.lease.run_id)
    assert (shown.pointer, shown.size_chars) == ("out_1", 12_000)


async def test_every_write_of_a_stale_holder_is_refused(stores: Stores, claim: Claim) -> None:
    ledger = stores.ledger(claim.lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k1", bound=BOUND)
    stores.pass_time(31)
    await stores.claimed(holder="other")
    for step in (
        ledger.propose(call("c2"), plan_step="s1"),
        ledger.deny("c1", error_code="X"),
        ledger.finish("c1", arguments_json="{}", status="success", output="zombie", error_code=""),
        ledger.doubt("c1", error_code="X"),
        ledger.check_fence(),
        stores.events(claim.lease).emit(Told("message", {"text": "zombie"}, key="k")),
        stores.leases.renew(claim.lease),
    ):
        with pytest.raises(LeaseLostError):
            await step
    row = await ledger.find("c1")
    assert row is not None
    assert row.state == "started"
    assert stores.rows("agent_events", "kind") == [("run_started",)]


async def test_a_lease_that_ran_out_is_lost_even_when_nobody_took_it(stores: Stores, claim: Claim) -> None:
    stores.pass_time(29)
    await stores.leases.renew(claim.lease)
    stores.pass_time(29)
    await stores.ledger(claim.lease).check_fence()
    stores.pass_time(2)
    with pytest.raises(LeaseLostError):
        await stores.leases.renew(claim.lease)
    with pytest.raises(LeaseLostError):
        await stores.ledger(claim.lease).check_fence()


@pytest.mark.slow
@pytest.mark.parametrize("stores", ["postgresql"], indirect=True)
async def test_a_lease_is_renewed_while_others_writes_take_long(stores: Stores, claim: Claim) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def long(_connection: Any) -> None:
        begun.set()
        assert go_on.wait(60)

    writing = asyncio.create_task(stores.database.write(long))
    try:
        assert await asyncio.to_thread(begun.wait, 60)
        async with asyncio.timeout(60):
            await stores.leases.renew(claim.lease, active_us=7)
        assert not writing.done()
    finally:
        go_on.set()
    await writing
    assert stores.rows("agent_runs", "active_us") == [(7,)]


async def test_sequences_have_no_gaps_and_a_key_counts_once(stores: Stores, claim: Claim) -> None:
    events = stores.events(claim.lease)
    keys = ["a", "b", "a", "c", "b", "d"]
    await asyncio.gather(*(events.emit(Told("step", {"step_id": key}, key=key)) for key in keys))
    started, *stored = await stores.log.of_turn(claim.lease.turn_id)
    assert (started.sequence, started.kind) == (1, "run_started")
    assert [event.sequence for event in stored] == [2, 3, 4, 5]
    assert {event.payload["step_id"] for event in stored} == {"a", "b", "c", "d"}


async def test_sequences_go_on_across_turns_and_stay_the_threads_own(stores: Stores) -> None:
    for thread_id in ("t1", "t2"):
        for number in (1, 2):
            turn = await stores.accepted(f"{thread_id}-request-{number}", thread_id=thread_id)
            claim = await stores.claimed(thread_id)
            await stores.events(claim.lease).emit(Told("step", {"step_id": "s"}, key="s"))
            await stores.end(claim)
            first = 4 * number - 3
            assert [e.sequence for e in await stores.log.of_turn(turn.turn_id)] == list(range(first, first + 4))


async def test_the_code_and_the_arguments_of_an_approval_are_never_stored(stores: Stores, claim: Claim) -> None:
    payload = {"approval_id": "ap_1", "tool": "write_file", "code": "S3CRET-CODE", "arguments": [{"display": "/etc"}]}
    await stores.events(claim.lease).emit(Told("approval_required", payload, key="ap"))
    [_, event] = await stores.log.of_turn(claim.lease.turn_id)
    assert event.payload == {"approval_id": "ap_1", "tool": "write_file"}


async def test_whoever_listens_to_a_thread_hears_of_its_events(stores: Stores, claim: Claim) -> None:
    with stores.news.listen(T1) as mine, stores.news.listen(ANA.thread_key("t2")) as others:
        await stores.events(claim.lease).emit(Told("step", {"step_id": "s"}, key="s"))
        assert mine.is_set()
        assert not others.is_set()


async def test_a_delivered_parcel_is_gone_and_a_refused_one_keeps_its_content(stores: Stores, claim: Claim) -> None:
    await stores.end(claim)
    await stores.accepted("request-2")
    await stores.end(await stores.claimed())
    first, second = await stores.outbox.waiting("transcript", T1)
    await stores.outbox.settle(first)
    await stores.outbox.settle(second, refusal="MESSAGE_CONFLICT")
    assert await stores.outbox.waiting("transcript", T1) == []
    assert await stores.outbox.lanes() == []
    delivered, refused = stores.rows("agent_outbox", "state, refusal, payload")
    assert tuple(delivered) == ("delivered", "", "{}")
    assert refused.refusal == "MESSAGE_CONFLICT"
    assert "listo" in refused.payload
