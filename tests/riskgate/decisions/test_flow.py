"""One call from proposal to outcome, over the wire."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_chassis.auth.jws import TokenType, verify
from phylactery_riskgate.domain.policy.engine import DecisionEngine

READ = '{"path":"a.txt"}'


async def test_a_low_risk_read_is_allowed_with_a_permit_for_exactly_the_bound_call(gate, ana, call):
    answer = await ana.evaluate(call("read_file", READ), plan_step="look at the file")
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert not answer.HasField("approval")
    assert answer.bound_call.arguments_json == READ
    assert answer.bound_call.args_hash == "sha256:" + hashlib.sha256(READ.encode()).hexdigest()
    claims = verify(answer.permit, TokenType.PERMIT, gate.keys.verifying).values
    now = gate.clock.now_us() // 1_000_000
    assert {name: claims[name] for name in ("iss", "aud", "sub", "tenant", "thread", "run", "tool", "exp", "nbf")} == {
        "iss": "riskgate",
        "aud": "riskgate",
        "sub": "ana",
        "tenant": "acme",
        "thread": "t1",
        "run": "r1",
        "tool": "read_file",
        "exp": now + 60,
        "nbf": now,
    }
    assert claims["args_hash"] == answer.bound_call.args_hash
    assert claims["decision_id"] == answer.decision_id
    assert answer.permit_expire_time.seconds == now + 60


@pytest.mark.slow
async def test_a_write_asks_its_requester_and_shows_the_bound_arguments_with_a_code(ana):
    answer = await ana.evaluate()
    approval = answer.approval
    assert answer.decision == types_pb2.DECISION_AUTH_REQUIRED
    assert answer.permit == ""
    assert approval.state == types_pb2.APPROVAL_STATE_PENDING
    assert (approval.approval_class, approval.tool, approval.risk) == (
        "self",
        "write_file",
        types_pb2.RISK_LEVEL_MEDIUM,
    )
    assert approval.args_hash == answer.bound_call.args_hash
    assert json.loads(answer.bound_call.arguments_json)["append"] is False
    assert next((view.path, view.control) for view in approval.arguments) == ("/path", True)
    assert len(approval.code) == 10
    assert approval.attempts_left == 5
    assert list(answer.policy_ids) == ["write.ask-self"]


async def test_a_call_outside_the_policy_is_blocked_with_reasons_in_both_languages(ana, call):
    answer = await ana.evaluate(call("read_file", '{"path":".ssh/id.pem"}'))
    assert answer.decision == types_pb2.DECISION_BLOCKED
    assert answer.permit == ""
    assert answer.reasons[0].code == "POLICY_FORBID"
    assert answer.reasons[0].message
    assert answer.reasons[0].message_es
    assert answer.reasons[0].policy_id == "path.protected"


async def test_approve_answers_a_state_and_evaluate_with_the_approval_answers_the_permit(ana):
    approval = (await ana.evaluate()).approval
    approved = await ana.approve(approval)
    assert approved.state == types_pb2.APPROVAL_STATE_APPROVED
    assert (approved.decided_by, approved.code) == ("ana", "")
    assert not [name for name in approved.DESCRIPTOR.fields_by_name if "permit" in name]
    answer = await ana.evaluate(approval=approval.id)
    assert answer.decision == types_pb2.DECISION_ALLOW
    assert answer.permit
    assert (await ana.get(approval.id)).state == types_pb2.APPROVAL_STATE_APPROVED


async def test_the_whole_life_of_a_write_leaves_one_receipt_and_a_complete_record(gate, ana):
    answer = await ana.permitted()
    redeemed = await ana.redeem(answer.permit)
    assert redeemed.bound_call.args_hash == answer.bound_call.args_hash
    assert not redeemed.repeated_redeem
    claims = verify(redeemed.receipt, TokenType.RECEIPT, gate.keys.verifying).values
    approval_id = next(record["approval_id"] for record in gate.records("approval_answered"))
    assert {name: claims[name] for name in ("aud", "sub", "tenant", "execution_id", "args_hash", "approval_id")} == {
        "aud": "executor",
        "sub": "ana",
        "tenant": "acme",
        "execution_id": "execution-1",
        "args_hash": answer.bound_call.args_hash,
        "approval_id": approval_id,
    }
    assert (await ana.get(approval_id)).state == types_pb2.APPROVAL_STATE_REDEEMED
    index = await ana.report("SUCCEEDED", result_size=4)
    kinds = [record["kind"] for record in gate.records()]
    assert kinds == ["decision", "approval_answered", "decision", "redeemed", "outcome"]
    assert gate.records()[index]["outcome"] == "SUCCEEDED"


async def test_a_delegate_speaks_for_its_user_and_the_record_keeps_both_names(gate):
    ana = gate.through_agent("ana")
    answer = await ana.permitted()
    await ana.redeem(answer.permit)
    assert {(record["subject"], record["actor"]) for record in gate.records()} == {("ana", "agent")}


async def test_asking_the_same_call_again_answers_the_same_and_writes_nothing(gate, ana, call):
    first = await ana.evaluate(call("read_file", READ))
    again = await ana.evaluate(call("read_file", '{ "path" : "a.txt" }'))
    assert again.replayed
    assert not first.replayed
    assert (again.decision_id, again.permit, again.audit_index) == (first.decision_id, first.permit, first.audit_index)
    assert again.bound_call == first.bound_call
    assert len(gate.records()) == gate.count("decisions") == 1


async def test_a_repeated_question_shows_the_same_approval_and_code(gate, ana):
    first, again = await ana.evaluate(), await ana.evaluate()
    assert again.approval == first.approval
    assert gate.count("approvals") == 1


async def test_a_permit_that_expired_unused_is_replaced_by_a_fresh_one(gate, ana, call):
    first = await ana.evaluate(call("read_file", READ))
    gate.clock.advance(59)
    assert (await ana.evaluate(call("read_file", READ))).permit == first.permit
    gate.clock.advance(1)
    fresh = await ana.evaluate(call("read_file", READ))
    assert fresh.permit != first.permit
    assert (fresh.decision_id, gate.count("decisions")) == (first.decision_id, 1)
    assert (await ana.redeem(fresh.permit, call("read_file", READ))).receipt


async def test_other_arguments_another_tool_or_another_thread_for_the_same_tool_call_id_conflict(
    gate, ana, call, refused
):
    await ana.evaluate(call("read_file", READ))
    for other, thread in (
        (call("read_file", '{"path":"b.txt"}'), "t1"),
        (call("echo", '{"text":"a"}'), "t1"),
        (call("read_file", READ), "t2"),
        (call("read_file", READ, raw_args_hash="sha256:" + "0" * 64), "t1"),
    ):
        refusal = await refused(ana.evaluate(other, thread=thread))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.ALREADY_EXISTS, "CALL_CONFLICT")
        assert refusal.metadata == {"tool_call_id": "c1"}
    assert gate.count("decisions") == 1


@pytest.mark.slow
async def test_faults_inside_the_arguments_are_recorded_as_blocked(gate, ana, call):
    faults = {
        '{"path":"a","path":"b"}': "DUPLICATE_KEY",
        '{"__entity":{"type":"User","id":"x"}}': None,
        "[" * 5_000 + "]" * 5_000: None,
        "{": None,
        "[]": None,
        '{"path":NaN}': None,
        '{"path":9007199254740993}': None,
    }
    for number, (text, code) in enumerate(faults.items()):
        answer = await ana.evaluate(call("read_file", text, f"c{number}"))
        assert answer.decision == types_pb2.DECISION_BLOCKED, text[:40]
        assert code in (None, answer.reasons[0].code)
        assert not answer.HasField("bound_call")
    assert len(gate.records("decision")) == len(faults)


async def test_many_questions_about_one_call_at_once_leave_one_record(gate, ana):
    answers = await asyncio.gather(*(ana.evaluate() for _ in range(16)))
    assert len({answer.decision_id for answer in answers}) == 1
    assert len({answer.approval.id for answer in answers}) == 1
    assert sum(not answer.replayed for answer in answers) == 1
    assert gate.count("decisions") == gate.count("approvals") == len(gate.records()) == 1


async def test_the_public_keys_are_listed_with_the_active_one_first_and_verify_a_permit(gate, ana, call):
    listed = await ana.list_keys()
    assert listed.issuer == "riskgate"
    assert json.loads(listed.keys[0].jwk)["crv"] == "Ed25519"
    assert "d" not in json.loads(listed.keys[0].jwk)
    assert listed.keys[0].kid == gate.keys.kid
    answer = await ana.evaluate(call("echo", '{"text":"a"}'))
    assert verify(answer.permit, TokenType.PERMIT, {listed.keys[0].kid: gate.keys.public[0].raw}).text("sub") == "ana"


async def test_a_large_call_is_read_beside_the_loop_so_that_others_need_not_wait(ana, call, monkeypatch):
    decide, threads = DecisionEngine.decide, []

    def noted(*arguments, **options):
        threads.append(threading.current_thread())
        return decide(*arguments, **options)

    monkeypatch.setattr(DecisionEngine, "decide", noted)
    await ana.evaluate(call("echo", json.dumps({"text": "small"})), run="small")
    large = await ana.evaluate(call("echo", json.dumps({"text": "x" * 100_000})), run="large")
    assert large.decision == types_pb2.DECISION_ALLOW
    assert [thread is threading.main_thread() for thread in threads] == [True, False]
