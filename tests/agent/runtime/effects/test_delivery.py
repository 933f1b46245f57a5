"""Outbox delivery, in order through outages, and the approval watcher."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from phylactery_agent.ports import ApprovalInfo, CallContext, GateRefusedError, GateUnavailableError
from phylactery_agent.runtime.approvals.watcher import ApprovalWatcher

from tests.support.agent.bench import STATE, Bench
from tests.support.agent.stores import BOUND, T1, Stores, call


def watcher_of(stores: Stores, bench: Bench, wake: Callable[[str], None], interval_seconds: float) -> ApprovalWatcher:
    return ApprovalWatcher(
        stores.runs, stores.inbox, bench.services, wake, stores.named_leases(), interval_seconds=interval_seconds
    )


async def test_reports_go_out_before_the_next_question_and_without_them_nothing_is_asked(
    stores: Stores, bench: Bench
) -> None:
    await stores.accepted()
    lease = (await stores.claimed()).lease
    ledger = stores.ledger(lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k", bound=BOUND)
    await ledger.finish("c1", arguments_json="{}", status="error", output="", error_code="TIMEOUT")
    gate = bench.gate(lease)
    bench.services.gate_down = True
    with pytest.raises(GateUnavailableError):
        await gate.evaluate(call("c2"), CallContext("t1", lease.run_id, "s1", "tool_intent"))
    bench.services.gate_down = False
    await gate.evaluate(call("c2"), CallContext("t1", lease.run_id, "s1", "tool_intent"))
    assert bench.services.told == [("ex_1", "FAILED"), ("evaluate", "c2")]


async def test_a_report_riskgate_refuses_for_good_holds_up_nothing(stores: Stores, bench: Bench) -> None:
    await stores.accepted()
    lease = (await stores.claimed()).lease
    ledger = stores.ledger(lease)
    await ledger.propose(call(), plan_step="s1")
    await ledger.start("c1", execution_id="ex_1", effect_key="k", bound=BOUND)
    await ledger.doubt("c1", error_code="CRASHED")
    bench.services.refusal = GateRefusedError("OUTCOME_CONFLICT", "another outcome stands")
    await bench.delivery.flush("outcome", T1)
    [row] = stores.rows("agent_outbox", "state, refusal")
    assert tuple(row) == ("refused", "OUTCOME_CONFLICT")


async def test_the_outbox_is_delivered_in_order_once_the_other_side_is_back(stores: Stores, bench: Bench) -> None:
    bench.services.memory_down = True
    for number in range(3):
        await stores.accepted(f"request-{number}", text=f"m{number}")
        await stores.end(await stores.claimed())
    delivering = asyncio.create_task(bench.delivery.run())
    await asyncio.sleep(0)
    assert await bench.delivery.flush_all() is False
    bench.services.memory_down = False
    await bench.services.heard_all.wait()
    delivering.cancel()
    assert [text for _, text in bench.services.told] == ["m0", "listo", "m1", "listo", "m2", "listo"]


async def test_a_lane_that_cannot_be_delivered_at_all_holds_up_no_other(
    stores: Stores, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = bench.services.append

    async def append(thread_id: str, run_id: str, messages: Sequence[Mapping[str, Any]]) -> None:
        if thread_id == "t1":
            raise ValueError("no form on the wire")
        await real(thread_id, run_id, messages)

    monkeypatch.setattr(bench.services, "append", append)
    for thread_id in ("t1", "t2"):
        await stores.accepted(f"request-{thread_id}", thread_id=thread_id)
        await stores.end(await stores.claimed(thread_id))
    assert await bench.delivery.flush_all() is False
    assert bench.services.told == [("t2", "hola"), ("t2", "listo")]


async def test_the_watcher_outlives_a_fault(stores: Stores, bench: Bench) -> None:
    woken = asyncio.Event()
    watcher = watcher_of(stores, bench, lambda _key: woken.set(), 0)
    await stores.accepted()
    await stores.end(await stores.claimed(), "suspended", approval_id="ap_1")
    faults = [ValueError("a state of tomorrow")]
    real = bench.services.get_approval

    async def get_approval(approval_id: str) -> ApprovalInfo:
        if faults:
            raise faults.pop()
        return await real(approval_id)

    bench.services.get_approval = get_approval  # type: ignore[method-assign]
    bench.services.approval_state = "APPROVED"
    watching = asyncio.create_task(watcher.run())
    async with asyncio.timeout(60):
        await woken.wait()
    assert not watching.done()
    assert faults == []
    watching.cancel()


async def test_the_watcher_leaves_a_run_alone_that_suspended_itself_again(stores: Stores, bench: Bench) -> None:
    woken: list[str] = []
    watcher = watcher_of(stores, bench, woken.append, 60)
    await stores.accepted()
    await stores.end(await stores.claimed(), "suspended", approval_id="ap_1")
    bench.services.gate_down = True
    assert await watcher.poll_once() == 0
    bench.services.gate_down = False
    bench.services.refusal = GateRefusedError("ROLE_REQUIRED", "this token may not")
    assert await watcher.poll_once() == 0
    bench.services.refusal = None
    bench.services.approval_state = "APPROVED"
    assert await watcher.poll_once() == 1
    await stores.end(await stores.claimed(), "suspended", reason="GATE_UNAVAILABLE", approval_id="ap_1")
    assert await watcher.poll_once() == 0
    assert woken == [T1]


async def test_a_persons_words_reach_the_write_policy_once_and_after_the_transcript(
    stores: Stores, bench: Bench
) -> None:
    turn = await stores.accepted(text="Vivo en Lima")
    bench.services.memory_down = True  # otherwise it is asked before the turn ends, to be quoted
    await bench.server().serve(await stores.claimed())
    assert not await bench.delivery.flush_all()
    assert bench.services.remembered == []
    bench.services.memory_down = False
    await bench.delivery.flush("memory", T1)
    assert bench.services.told == [("t1", "Vivo en Lima"), ("t1", "listo")], "memory looks the words up there"
    assert bench.services.remembered == [("Vivo en Lima", f"{turn.turn_id}.user", False)]
    assert await bench.delivery.flush_all()
    assert len(bench.services.remembered) == 1


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ("APROBAR ap_abc123 code_1234", {}),
        ("x" * 10_001, {}),
        (" ", {}),
        ("Vivo en Lima", {"do_not_store": True}),
        ("recuerda que vivo en Lima", {"plan": [{"tool": "remember"}]}),
    ],
)
async def test_some_words_are_no_matter_for_the_write_policy(
    stores: Stores, bench: Bench, text: str, state: dict[str, Any]
) -> None:
    turn = await stores.accepted(text=text)

    async def end(_given: Any, _context: Any) -> Mapping[str, Any]:
        return {**STATE, "request_turn": turn.turn_id, **state}

    bench.graph.work = end
    await bench.server().serve(await stores.claimed())
    assert await bench.delivery.flush_all()
    assert bench.services.remembered == []


async def test_other_words_count_though_the_plan_that_waits_remembers_something(stores: Stores, bench: Bench) -> None:
    async def end(_given: Any, _context: Any) -> Mapping[str, Any]:
        return {**STATE, "request_turn": "an-earlier-turn", "plan": [{"tool": "remember"}]}

    bench.graph.work = end
    await stores.accepted(text="Vivo en Lima")
    await bench.server().serve(await stores.claimed())
    assert await bench.delivery.flush_all()
    assert [text for text, _, _ in bench.services.remembered] == ["Vivo en Lima"]
