"""Approval answers: the seven factors, the code, votes, expiry, and visibility."""

from __future__ import annotations

import asyncio
import threading

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.domain.views.view import call_view

PENDING = types_pb2.APPROVAL_STATE_PENDING
APPROVED = types_pb2.APPROVAL_STATE_APPROVED
REJECTED = types_pb2.APPROVAL_STATE_REJECTED
EXPIRED = types_pb2.APPROVAL_STATE_EXPIRED
CANCELLED = types_pb2.APPROVAL_STATE_CANCELLED
PAY = ("pay", '{"to":"ben","note":"for the boat"}')
WIPE = ("wipe", '{"path":"old"}')
OTHER_HASH = "sha256:" + "0" * 64


def failed(gate) -> list[list[str]]:
    return [record["failed"] for record in gate.records("approval_refused")]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"code": "AAAAAAAAAA"}, ("CODE_MISMATCH", "signature")),
        ({"thread_id": "t2"}, ("THREAD_MISMATCH", "thread")),
        ({"args_hash": OTHER_HASH}, ("ARGS_MISMATCH", "argument_hash")),
    ],
)
async def test_a_wrong_factor_is_refused_by_name_and_recorded(gate, ana, refused, changes, told):
    approval = (await ana.evaluate()).approval
    refusal = await refused(ana.approve(approval, **changes))
    assert refusal.code == grpc.StatusCode.FAILED_PRECONDITION
    assert (refusal.reason, refusal.metadata["factor"]) == told
    assert failed(gate) == [[told[1]]]
    assert (await ana.get(approval.id)).state == PENDING


async def test_every_failed_factor_is_recorded_and_a_wrong_code_beside_another_fault_still_counts(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    refusal = await refused(ana.approve(approval, code="WRONG", thread_id="t2", args_hash=OTHER_HASH))
    assert refusal.reason == "THREAD_MISMATCH"
    assert failed(gate) == [["thread", "argument_hash", "signature"]]
    assert (await ana.get(approval.id)).attempts_left == 4


@pytest.mark.parametrize(
    "typed",
    [
        str.lower,
        lambda code: f"  {code[:5]} {code[5:]} ",
        lambda code: f"{code[:5]}-{code[5:]}".lower(),
        "\u00a0".join,
        lambda code: "".join(chr(ord(char) + 0xFEE0) for char in code),
        lambda code: f"\u200b{code}",
    ],
)
async def test_a_code_typed_in_another_way_is_that_code_and_costs_no_try(gate, ana, typed):
    approval = (await ana.evaluate()).approval
    assert (await ana.approve(approval, code=typed(approval.code))).state == APPROVED
    assert (failed(gate), (await ana.get(approval.id)).attempts_left) == ([], 5)


async def test_five_wrong_codes_close_the_approval_and_the_right_one_comes_too_late(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    left = [(await refused(ana.approve(approval, code=f"WRONG{n}"))).metadata["attempts_left"] for n in range(5)]
    assert left == ["4", "3", "2", "1", "0"]
    closed = await ana.get(approval.id)
    assert (closed.state, closed.closed_reason, closed.attempts_left, closed.code) == (
        CANCELLED,
        "TOO_MANY_ATTEMPTS",
        0,
        "",
    )
    refusal = await refused(ana.approve(approval))
    assert (refusal.reason, refusal.metadata["state"]) == ("APPROVAL_NOT_PENDING", "CANCELLED")
    assert len(gate.records("approval_closed")) == 1
    assert (await refused(ana.evaluate(approval=approval.id))).reason == "APPROVAL_NOT_PENDING"


async def test_wrong_codes_sent_at_once_are_all_counted(ana, refused):
    approval = (await ana.evaluate()).approval
    refusals = await asyncio.gather(*(refused(ana.approve(approval, code=f"WRONG{n}")) for n in range(12)))
    assert sorted(r.reason for r in refusals) == ["APPROVAL_NOT_PENDING"] * 7 + ["CODE_MISMATCH"] * 5


async def test_wrong_codes_survive_a_restart(make_gate, refused):
    gate = await make_gate()
    approval = (await gate.person("ana").evaluate()).approval
    await refused(gate.person("ana").approve(approval, code="WRONG"))
    await gate.stop()
    again = await make_gate()
    seen = await again.person("ana").get(approval.id)
    assert (seen.attempts_left, seen.code) == (4, approval.code)


async def test_the_same_answer_again_is_the_same_state_and_another_answer_is_too_late(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    first, again = await ana.approve(approval), await ana.approve(approval)
    assert first == again
    assert len(gate.records("approval_answered")) == 1
    for late in (ana.approve(approval, code="WRONG"), ana.reject(approval.id)):
        refusal = await refused(late)
        assert (refusal.reason, refusal.metadata["state"]) == ("APPROVAL_NOT_PENDING", "APPROVED")


async def test_after_the_redeem_an_answer_is_refused_with_the_state(ana, refused):
    approval = (await ana.evaluate()).approval
    await ana.approve(approval)
    await ana.redeem((await ana.evaluate(approval=approval.id)).permit)
    refusal = await refused(ana.approve(approval))
    assert (refusal.reason, refusal.metadata["state"]) == ("APPROVAL_NOT_PENDING", "REDEEMED")


async def test_two_equal_answers_at_once_leave_one_record(gate, ana):
    approval = (await ana.evaluate()).approval
    answers = await asyncio.gather(*(ana.approve(approval) for _ in range(8)))
    assert {answer.state for answer in answers} == {APPROVED}
    assert len(gate.records("approval_answered")) == 1


async def test_of_a_yes_and_a_no_at_once_exactly_one_counts(gate, ana):
    approval = (await ana.evaluate()).approval
    results = await asyncio.gather(ana.approve(approval), ana.reject(approval.id), return_exceptions=True)
    assert sum(isinstance(result, grpc.aio.AioRpcError) for result in results) == 1
    assert len(gate.records("approval_answered")) == 1


async def test_rejecting_needs_no_code_closes_the_approval_and_can_be_repeated(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    rejected = await ana.reject(approval.id, reason="not that file", thread="t1")
    assert (rejected.state, rejected.closed_reason, rejected.decided_by) == (REJECTED, "REJECTED_BY_USER", "ana")
    assert await ana.reject(approval.id) == rejected
    assert (await refused(ana.approve(approval))).metadata["state"] == "REJECTED"
    assert (await refused(ana.evaluate(approval=approval.id))).reason == "APPROVAL_NOT_PENDING"
    assert "not that file" not in str(gate.records())


async def test_rejecting_from_another_thread_is_refused(ana, refused):
    approval = (await ana.evaluate()).approval
    assert (await refused(ana.reject(approval.id, thread="t9"))).reason == "THREAD_MISMATCH"
    assert (await ana.get(approval.id)).state == PENDING


async def test_time_ends_a_pending_approval_durably_and_once(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    gate.clock.advance(600)
    refusal = await refused(ana.approve(approval))
    assert (refusal.code, refusal.reason, refusal.metadata["factor"]) == (
        grpc.StatusCode.FAILED_PRECONDITION,
        "APPROVAL_EXPIRED",
        "expiry",
    )
    seen = await ana.get(approval.id)
    assert (seen.state, seen.closed_reason, seen.code) == (EXPIRED, "EXPIRED", "")
    assert [record["state"] for record in gate.records("approval_closed")] == ["EXPIRED"]
    assert (await refused(ana.reject(approval.id))).reason == "APPROVAL_EXPIRED"


async def test_looking_at_an_approval_whose_time_is_over_records_that(gate, ana):
    approval = (await ana.evaluate()).approval
    gate.clock.advance(601)
    assert (await ana.get(approval.id)).state == EXPIRED
    assert (await ana.get(approval.id)).state == EXPIRED
    assert len(gate.records("approval_closed")) == 1


async def test_a_list_records_what_time_has_ended_and_filters_by_it(gate, ana, call):
    for number in range(3):
        await ana.evaluate(call(call_id=f"c{number}"))
    gate.clock.advance(601)
    await ana.evaluate(call(call_id="c9"))
    listed = await ana.list(state=EXPIRED)
    assert len(listed.approvals) == len(gate.records("approval_closed")) == 3
    assert len((await ana.list(state=PENDING)).approvals) == 1


async def test_an_approval_whose_time_is_over_is_shown_by_a_reader_and_holds_up_no_decision(gate, ana, monkeypatch):
    asked = (await ana.evaluate()).approval
    threads: list[str] = []

    def shown(*call, **how):
        threads.append(threading.current_thread().name)
        return call_view(*call, **how)

    monkeypatch.setattr("phylactery_riskgate.decisions.context.call_view", shown)
    gate.clock.advance(31 * 60)
    assert (await ana.get(asked.id)).state == EXPIRED
    assert len(gate.records("approval_closed")) == 1
    assert [name.partition("_")[0] for name in threads] == ["database-reader"]


async def test_an_approved_approval_expires_too(gate, ana, refused):
    approval = await ana.approved()
    gate.clock.advance(600)
    assert (await refused(ana.evaluate(approval=approval.id))).reason == "APPROVAL_EXPIRED"
    assert (await ana.get(approval.id)).state == EXPIRED


async def test_a_self_approval_needs_code_and_thread_and_their_absence_costs_no_try(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    refusal = await refused(ana.approve(approval, code="", thread_id=""))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
    assert sorted(refusal.fields) == ["code", "thread_id"]
    assert (await ana.get(approval.id)).attempts_left == 5


async def test_an_approver_sees_a_self_approval_without_code_and_may_not_answer_yes(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    carla = gate.person("carla")
    seen = await carla.get(approval.id)
    assert (seen.code, seen.state, len(seen.arguments)) == ("", PENDING, 3)
    refusal = await refused(carla.approve(seen, code=approval.code))
    assert (refusal.code, refusal.reason, refusal.metadata["factor"]) == (
        grpc.StatusCode.PERMISSION_DENIED,
        "NOT_ELIGIBLE",
        "user",
    )
    assert (await ana.get(approval.id)).attempts_left == 5
    assert (await carla.reject(approval.id)).state == REJECTED


async def test_a_peer_approval_has_no_code_and_only_an_approver_other_than_the_requester_answers(
    gate, ana, call, refused
):
    approval = (await ana.evaluate(call(*PAY))).approval
    assert (approval.approval_class, approval.code) == ("peer", "")
    shown = {view.path: view for view in approval.arguments}
    assert (shown["/note"].display, shown["/note"].sensitive) == ("«sensitive»", True)
    for nobody in (ana, gate.through_agent("ana")):
        assert (await refused(nobody.approve(approval))).reason == "NOT_ELIGIBLE"
    assert (await refused(gate.through_agent("ana").reject(approval.id))).reason == "NOT_ELIGIBLE"
    dora = gate.person("dora")
    assert (await refused(dora.approve(approval, args_hash=OTHER_HASH))).reason == "ARGS_MISMATCH"
    approved = await dora.approve(approval)
    assert (approved.state, approved.decided_by) == (APPROVED, "dora")
    assert (await ana.evaluate(call(*PAY), approval=approval.id)).permit


async def test_an_approver_cannot_approve_their_own_call_of_class_peer(gate, call, refused):
    carla = gate.person("carla")
    approval = (await carla.evaluate(call(*PAY))).approval
    assert (await refused(carla.approve(approval))).reason == "NOT_ELIGIBLE"


async def test_an_approver_spoken_for_by_a_delegate_is_no_approver(gate, ana, call, refused):
    approval = (await ana.evaluate(call(*PAY))).approval
    refusal = await refused(gate.through_agent("carla").approve(approval))
    assert refusal.reason == "APPROVAL_NOT_FOUND"


async def test_dual_needs_two_different_people_and_one_of_them_twice_is_one(gate, ana, call):
    approval = (await ana.evaluate(call(*WIPE))).approval
    assert approval.approval_class == "dual"
    dora, carla = gate.person("dora"), gate.person("carla")
    for _ in range(2):
        assert (await dora.approve(approval)).state == PENDING
    assert (await ana.evaluate(call(*WIPE), approval=approval.id)).permit == ""
    assert (await carla.approve(approval)).state == APPROVED
    assert (await dora.approve(approval)).state == APPROVED
    assert [record["votes"] for record in gate.records("approval_answered")] == [1, 2]
    assert (await ana.evaluate(call(*WIPE), approval=approval.id)).permit


async def test_two_votes_at_once_are_both_counted(gate, ana, call):
    approval = (await ana.evaluate(call(*WIPE))).approval
    await asyncio.gather(gate.person("dora").approve(approval), gate.person("carla").approve(approval))
    assert (await ana.get(approval.id)).state == APPROVED


async def test_a_list_shows_ones_own_newest_first_without_codes_and_pages_through(gate, ana, call):
    for number in range(5):
        gate.clock.advance(1)
        await ana.evaluate(call(call_id=f"c{number}"))
    await gate.person("ben").evaluate(call(call_id="other"))
    seen, token = [], ""
    while True:
        page = await ana.list(page_size=2, page_token=token)
        seen += page.approvals
        token = page.next_page_token
        if not token:
            break
    assert [approval.tool_call_id for approval in seen] == ["c4", "c3", "c2", "c1", "c0"]
    assert {approval.code for approval in seen} == {""}
    assert len((await gate.person("dora").list()).approvals) == 6
    assert len((await ana.list(thread_id="t2")).approvals) == 0


@pytest.mark.parametrize("per", ["thread", "user"])
async def test_a_storm_of_approvals_is_refused_and_room_comes_back_with_an_answer(
    make_gate, bundle_with, call, refused, per
):
    gate = await make_gate(bundle=bundle_with(**{f"max_pending_per_{per}": 2}))
    ana = gate.person("ana")
    other = '{"path":"other.txt","content":"x"}'
    first = (await ana.evaluate(call(call_id="c0"))).approval
    await ana.evaluate(call(call_id="c1"))
    refusal = await refused(ana.evaluate(call(arguments=other, call_id="c2")))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "TOO_MANY_PENDING")
    assert refusal.metadata == {"limit": "2", "per": per}
    assert gate.count("decisions") == 2
    await ana.reject(first.id)
    assert (await ana.evaluate(call(arguments=other, call_id="c2"))).approval.id
    gate.clock.advance(601)
    assert (await ana.evaluate(call(call_id="c3"))).approval.id


async def test_an_approval_counts_for_nothing_but_its_own_call(gate, ana, call, refused):
    approval = await ana.approved()
    cases = [
        (ana.evaluate(call(arguments='{"path":"notes.txt","content":"x"}'), approval=approval.id), "ARGS_MISMATCH"),
        (ana.evaluate(call(call_id="c2"), approval=approval.id), "ARGS_MISMATCH"),
        (ana.evaluate(run="r2", approval=approval.id), "ARGS_MISMATCH"),
        (ana.evaluate(thread="t2", approval=approval.id), "THREAD_MISMATCH"),
        (gate.person("ben").evaluate(approval=approval.id), "APPROVAL_NOT_FOUND"),
        (gate.person("zoe").evaluate(approval=approval.id), "APPROVAL_NOT_FOUND"),
        (ana.evaluate(approval="ap_unknown"), "APPROVAL_NOT_FOUND"),
    ]
    for asked, reason in cases:
        assert (await refused(asked)).reason == reason
    recorded = [record["failed"] for record in gate.records("evaluate_refused")]
    assert recorded == [["argument_hash"], ["id"], ["id"], ["thread"], ["user"], ["id"], ["id"]]
    assert (await ana.evaluate(approval=approval.id)).permit


async def test_evaluate_with_an_approval_nobody_has_answered_still_asks(gate, ana):
    first = await ana.evaluate()
    again = await ana.evaluate(approval=first.approval.id)
    assert (again.decision, again.permit) == (types_pb2.DECISION_AUTH_REQUIRED, "")
    assert again.approval == first.approval
    assert gate.count("decisions") == 1


async def test_a_stricter_policy_wins_over_an_approval_that_stands(make_gate, bundle_with, refused):
    gate = await make_gate()
    approval = await gate.person("ana").approved()
    await gate.stop()
    stricter = (
        '@id("stop")\n@title("x")\n@title_es("x")\nforbid (principal, action in Action::"effect:write", resource);'
    )
    again = await make_gate(bundle=bundle_with(policies=stricter, revision=2))
    answer = await again.person("ana").evaluate(approval=approval.id)
    assert (answer.decision, answer.permit) == (types_pb2.DECISION_BLOCKED, "")
    assert answer.bundle_revision == 2


async def test_an_approval_given_under_a_weaker_class_of_the_same_name_does_not_count(
    make_gate, bundle_with, call, refused
):
    gate = await make_gate()
    approval = (await gate.person("ana").evaluate(call("pay", '{"to":"x"}'))).approval
    assert (await gate.person("carla").approve(approval)).state == APPROVED
    permit = (await gate.person("ana").evaluate(call("pay", '{"to":"x"}'), approval=approval.id)).permit
    other = (await gate.person("ana").evaluate(call("pay", '{"to":"x"}', "c2"))).approval
    await gate.person("carla").approve(other)
    await gate.stop()
    classes = [
        {"name": "self", "approvers": 1, "who": "requester"},
        {"name": "peer", "approvers": 2, "who": "not_requester"},
        {"name": "dual", "approvers": 2, "who": "not_requester"},
    ]
    again = await make_gate(bundle=bundle_with(classes=classes, revision=2))
    answer = await again.person("ana").evaluate(call("pay", '{"to":"x"}', "c2"), approval=other.id)
    assert (answer.decision, answer.permit) == (types_pb2.DECISION_AUTH_REQUIRED, "")
    refusal = await refused(again.person("ana").redeem(permit, call("pay", '{"to":"x"}')))
    assert refusal.reason == "POLICY_CHANGED"
    assert again.count("redemptions") == 0


async def test_wrong_codes_of_somebody_else_do_not_close_the_requesters_approval(gate, ana, refused):
    approval = (await ana.evaluate()).approval
    for _ in range(6):
        refusal = await refused(gate.person("carla").approve(approval, code="WRONG"))
        assert refusal.reason == "NOT_ELIGIBLE"
    assert (await ana.get(approval.id)).attempts_left == 5
    assert (await ana.approve(approval)).state == APPROVED
