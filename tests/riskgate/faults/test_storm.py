"""Request storms: limits on approvals hold exactly, and a rejected request is not repeated."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc import aio
from phylactery.riskgate.v1 import approval_pb2_grpc, riskgate_pb2, riskgate_pb2_grpc, types_pb2
from phylactery_chassis.db.database import Database
from phylactery_riskgate.app import PACKAGE

from tests.support.processes.forks import Forked

OTHER = '{"path":"other.txt","content":"x"}'
PAY = ("pay", '{"to":"x"}')
STARTS_SECONDS = 60


async def test_more_than_the_hours_share_is_refused_by_name_and_recorded(make_gate, bundle_with, call, refused):
    gate = await make_gate(bundle=bundle_with(max_asked_per_user_per_hour=3))
    ana = gate.person("ana")
    for number in range(3):
        gate.clock.advance(60)
        approval = (await ana.evaluate(call(call_id=f"c{number}"))).approval
        await ana.cancel(approval.id)
    refusal = await refused(ana.evaluate(call(call_id="c3")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_ASKED")
    assert refusal.metadata == {"limit": "3", "per": "user", "retry_after_seconds": "3480"}
    assert "3480 s" in refusal.message
    (record,) = gate.records("evaluate_refused")
    assert (record["reason"], record["subject"], record["tool_call_id"]) == ("TOO_MANY_ASKED", "ana", "c3")
    assert (gate.count("approvals"), gate.count("decisions")) == (3, 3)
    assert (await gate.person("ben").evaluate(call(call_id="c3"))).approval.id
    gate.clock.advance(3_481)
    assert (await ana.evaluate(call(call_id="c3"))).approval.id


async def test_a_class_has_a_share_of_its_own(make_gate, bundle_with, call, refused):
    classes = [
        {"name": "self", "approvers": 1, "who": "requester"},
        {"name": "peer", "approvers": 1, "who": "not_requester", "max_asked_per_hour": 1},
        {"name": "dual", "approvers": 2, "who": "not_requester"},
    ]
    gate = await make_gate(bundle=bundle_with(classes=classes))
    ana = gate.person("ana")
    await ana.evaluate(call(*PAY, "c1"))
    refusal = await refused(ana.evaluate(call(*PAY, "c2")))
    assert (refusal.reason, refusal.metadata["per"], refusal.metadata["limit"]) == ("TOO_MANY_ASKED", "peer", "1")
    assert (await ana.evaluate(call(call_id="c3"))).approval.approval_class == "self"


async def test_what_was_rejected_is_not_asked_again_in_any_thread_until_its_time_is_over(gate, ana, call, refused):
    approval = (await ana.evaluate(call(*PAY, "c1"))).approval
    await gate.person("dora").reject(approval.id)
    gate.clock.advance(100)
    for place in ({"thread": "t1"}, {"thread": "t2", "run": "r2"}):
        refusal = await refused(ana.evaluate(call(*PAY, "c2"), **place))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "REJECTED_BEFORE")
        assert refusal.metadata == {"approval_id": approval.id, "retry_after_seconds": "200"}
    assert [record["reason"] for record in gate.records("evaluate_refused")] == ["REJECTED_BEFORE"] * 2
    assert (await ana.evaluate(call("pay", '{"to":"y"}', "c3"))).approval.id
    assert (await gate.person("carla").evaluate(call(*PAY, "c2"))).approval.id
    gate.clock.advance(200)
    assert (await ana.evaluate(call(*PAY, "c2"))).approval.id


@pytest.mark.slow
async def test_the_rejected_proposal_itself_still_answers_what_became_of_it(gate, ana, call):
    approval = (await ana.evaluate(call())).approval
    await ana.reject(approval.id)
    again = await ana.evaluate(call())
    assert (again.replayed, again.approval.state) == (True, types_pb2.APPROVAL_STATE_REJECTED)


async def test_a_bundle_may_let_a_rejected_call_be_asked_at_once(make_gate, bundle_with, call):
    gate = await make_gate(bundle=bundle_with(rejected_stays_seconds=0))
    ana = gate.person("ana")
    await ana.reject((await ana.evaluate(call())).approval.id)
    assert (await ana.evaluate(call(call_id="c2"))).approval.id


async def test_cancelled_and_expired_are_no_rejection(gate, ana, call):
    await ana.cancel((await ana.evaluate(call())).approval.id)
    await ana.evaluate(call(call_id="c2"))
    gate.clock.advance(601)
    assert (await ana.evaluate(call(call_id="c3"))).approval.id


async def test_a_clock_that_was_set_back_gives_no_room_for_a_storm(make_gate, bundle_with, call, refused):
    gate = await make_gate(bundle=bundle_with(max_asked_per_user_per_hour=1))
    ana = gate.person("ana")
    await ana.cancel((await ana.evaluate(call())).approval.id)
    gate.clock.advance(-3_600)
    assert (await refused(ana.evaluate(call(call_id="c2")))).reason == "TOO_MANY_ASKED"


async def test_what_is_allowed_without_asking_is_no_storm(make_gate, bundle_with, call):
    gate = await make_gate(bundle=bundle_with(max_asked_per_user_per_hour=1))
    ana = gate.person("ana")
    for number in range(20):
        assert (await ana.evaluate(call("read_file", '{"path":"a.txt"}', f"c{number}"))).permit


class Replica:
    """A RiskGate in a process of its own over a database it shares with others."""

    def __init__(self, folder: Path, number: int, bundle: Path, url: str) -> None:
        self._ready = folder / f"ready-{number}.json"
        environment = os.environ | {
            "RISKGATE_DATA_DIR": str(folder),
            "RISKGATE_DATABASE_URL": url,
            "RISKGATE_BUNDLE": str(bundle),
            "RISKGATE_PORT": "0",
            "RISKGATE_READY_FILE": str(self._ready),
        }
        self.process = Forked("phylactery_riskgate", environment=environment)

    async def ready(self) -> None:
        async with asyncio.timeout(STARTS_SECONDS):
            while not self._ready.exists():
                assert self.process.poll() is None, "the service ended before it served"
                await asyncio.sleep(0.02)
        port = json.loads(self._ready.read_text())["port"]
        self.channel = aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.enable_retries", 0)])
        self.decisions = riskgate_pb2_grpc.RiskGateServiceStub(self.channel)
        self.approvals = approval_pb2_grpc.ApprovalServiceStub(self.channel)

    async def evaluate(self, asked: types_pb2.ToolCall, thread: str, subject: str) -> riskgate_pb2.EvaluateResponse:
        request = riskgate_pb2.EvaluateRequest(call=asked, thread_id=thread, run_id="r1")
        return await self.decisions.Evaluate(request, metadata=(("x-phylactery-subject", subject),), timeout=60)

    async def stop(self) -> None:
        if hasattr(self, "channel"):
            await self.channel.close()
        self.process.terminate()
        await asyncio.to_thread(self.process.wait, 60)


@pytest.fixture
async def replicas(tmp_path: Path, bundle_with: Any, shared_database: str) -> Any:
    """Three processes over one database, whose bundle lets five approvals wait for a thread and seven for a user."""
    bundle = bundle_with(max_pending_per_thread=5, max_pending_per_user=7)
    folder = tmp_path / "shared"
    folder.mkdir(mode=0o700)
    if shared_database:
        database = Database(shared_database)
        database.migrate(PACKAGE)
        database.close()
    started: list[Replica] = []
    try:
        for number in range(3):  # the first makes keys and schema
            started.append(Replica(folder, number, bundle, shared_database))
            await started[-1].ready()
        yield started
    finally:
        await asyncio.gather(*(one.stop() for one in started))


@pytest.mark.slow
async def test_processes_that_race_for_the_last_places_let_exactly_as_many_in(replicas, call):
    asks = [
        replicas[number % 3].evaluate(call(call_id=f"c{number}"), f"t{number % 2}", subject)
        for number in range(60)
        for subject in ("ana", "ben")
    ]
    found = await asyncio.gather(*asks, return_exceptions=True)
    let_in = [answer for answer in found if isinstance(answer, riskgate_pb2.EvaluateResponse)]
    refusals = [answer for answer in found if isinstance(answer, aio.AioRpcError)]
    assert len(let_in) + len(refusals) == 120
    assert {error.code() for error in refusals} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
    waiting = [(answer.approval.requester, answer.approval.thread_id) for answer in let_in]
    for subject in ("ana", "ben"):
        threads = [thread for requester, thread in waiting if requester == subject]
        assert len(threads) == 7
        assert max(threads.count("t0"), threads.count("t1")) <= 5
