"""Another user and another tenant try everything on ana's data."""

from __future__ import annotations

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2

READ = ("read_file", '{"path":"a.txt"}')


@pytest.fixture(params=["ben", "ben through the agent", "zoe", "ana of another tenant"])
def stranger(request, gate):
    return {
        "ben": gate.person("ben"),
        "ben through the agent": gate.through_agent("ben"),
        "zoe": gate.person("zoe"),
        "ana of another tenant": gate.through_agent("ana", "zeta"),
    }[request.param]


async def test_a_stranger_cannot_see_answer_or_use_an_approval(gate, ana, stranger, refused):
    approval = (await ana.evaluate()).approval
    for attempt in (
        stranger.get(approval.id),
        stranger.approve(approval),
        stranger.reject(approval.id),
        stranger.evaluate(approval=approval.id),
    ):
        refusal = await refused(attempt)
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "APPROVAL_NOT_FOUND")
    assert len((await stranger.list()).approvals) == 0
    assert (await ana.get(approval.id)) == approval
    tried = gate.records("approval_refused", "evaluate_refused")
    assert len(tried) == 3
    assert all(record["failed"] in (["user"], ["id"]) for record in tried)


async def test_the_same_place_asked_by_a_stranger_is_a_call_of_their_own(gate, ana, stranger):
    mine, theirs = await ana.evaluate(), await stranger.evaluate()
    assert mine.decision_id != theirs.decision_id
    assert mine.approval.id != theirs.approval.id
    assert mine.approval.code != theirs.approval.code
    assert not theirs.replayed
    assert gate.count("decisions") == 2


async def test_a_stranger_cannot_redeem_a_permit_or_report_its_outcome(ana, stranger, call, refused):
    answer = await ana.evaluate(call(*READ))
    assert (await refused(stranger.redeem(answer.permit, call(*READ)))).reason == "PERMIT_INVALID"
    receipt = await ana.redeem(answer.permit, call(*READ))
    assert receipt.receipt
    assert (await refused(stranger.redeem(answer.permit, call(*READ)))).reason == "PERMIT_INVALID"
    assert (await refused(stranger.report("SUCCEEDED"))).reason == "EXECUTION_NOT_FOUND"


async def test_a_strangers_storm_does_not_use_up_the_room_of_a_thread(ana, stranger, call):
    for number in range(5):
        await stranger.evaluate(call(call_id=f"c{number}"))
    assert (await ana.evaluate()).decision == types_pb2.DECISION_AUTH_REQUIRED


async def test_an_execution_id_taken_by_a_stranger_is_still_free(ana, stranger, call):
    theirs = await stranger.evaluate(call(*READ))
    await stranger.redeem(theirs.permit, call(*READ))
    mine = await ana.evaluate(call(*READ))
    assert not (await ana.redeem(mine.permit, call(*READ))).repeated_redeem


async def test_a_code_of_one_approval_opens_no_other(ana, call, refused):
    one = (await ana.evaluate(call(call_id="c1"))).approval
    two = (await ana.evaluate(call(call_id="c2"))).approval
    assert one.code != two.code
    assert (await refused(ana.approve(two, code=one.code))).reason == "CODE_MISMATCH"


async def test_nobody_without_identity_or_role_gets_anything(gate, call, refused):
    nobody = gate.person("nobody")
    for attempt in (nobody.evaluate(), nobody.get("ap_1"), nobody.list(), nobody.list_keys()):
        assert (await refused(attempt)).code == grpc.StatusCode.UNAUTHENTICATED
    dora = gate.person("dora")
    refusal = await refused(dora.evaluate(call(*READ)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_REQUIRED")
    assert refusal.metadata == {"role": "caller"}
