"""Evaluate with an execution_id: what is allowed is redeemed in the transaction that records the decision."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from phylactery.riskgate.v1 import riskgate_pb2, types_pb2
from phylactery_chassis.auth.jws import TokenType, verify

from tests.support.contracts.refusals import refusal_of

READ = ("read_file", '{"path":"a.txt"}')
ALLOW = types_pb2.DECISION_ALLOW


async def test_an_allowed_call_is_decided_and_redeemed_and_both_are_on_record(gate, ana, call):
    answer = await ana.evaluate(call(*READ), execution_id="execution-1")
    assert (answer.decision, answer.permit, answer.replayed) == (ALLOW, "", False)
    assert not answer.HasField("permit_expire_time")
    redemption = answer.redemption
    assert (redemption.bound_call, redemption.repeated_redeem) == (answer.bound_call, False)
    claims = verify(redemption.receipt, TokenType.RECEIPT, gate.keys.verifying)
    named = {"execution_id": "execution-1", "decision_id": answer.decision_id, "args_hash": answer.bound_call.args_hash}
    assert {name: claims.text(name) for name in named} == named
    kinds = [one["kind"] for one in gate.records("decision", "redeemed", "permit_renewed")]
    assert kinds == ["decision", "redeemed"]
    decided, redeemed = gate.records("decision", "redeemed")
    assert decided["permit_id"] == redeemed["permit_id"] != ""
    assert (gate.count("decisions"), gate.count("redemptions")) == (1, 1)


async def test_the_request_made_again_gets_a_permit_which_tells_its_execution_that_it_was_redeemed(
    gate, ana, call, refused
):
    first = await ana.evaluate(call(*READ), execution_id="execution-1")
    again = await ana.evaluate(call(*READ), execution_id="execution-1")
    assert (again.decision_id, again.replayed) == (first.decision_id, True)
    assert again.permit
    assert not again.HasField("redemption")
    same = await ana.redeem(again.permit, call(*READ), execution="execution-1")
    assert (same.receipt, same.repeated_redeem) == (first.redemption.receipt, True)
    assert (await refused(ana.redeem(again.permit, call(*READ), execution="execution-2"))).reason == "ALREADY_REDEEMED"
    assert gate.count("redemptions") == 1


async def test_a_decision_that_was_made_without_it_is_redeemed_by_its_permit(gate, ana, call):
    await ana.evaluate(call(*READ))
    answer = await ana.evaluate(call(*READ), execution_id="execution-1")
    assert answer.replayed
    assert not answer.HasField("redemption")
    assert gate.count("redemptions") == 0
    assert not (await ana.redeem(answer.permit, call(*READ), execution="execution-1")).repeated_redeem


@pytest.mark.parametrize(
    "asked", [("write_file", '{"path":"a.txt","content":"x"}'), ("no_such_tool", "{}"), ("read_file", '{"path":3}')]
)
async def test_what_is_not_allowed_redeems_nothing(gate, ana, call, asked):
    answer = await ana.evaluate(call(*asked), execution_id="execution-1")
    assert answer.decision != ALLOW
    assert not answer.HasField("redemption")
    assert (gate.count("decisions"), gate.count("redemptions")) == (1, 0)


async def test_what_an_approval_allows_is_redeemed_by_its_permit(gate, ana):
    approval = await ana.approved()
    answer = await ana.evaluate(approval=approval.id, execution_id="execution-1")
    assert answer.decision == ALLOW
    assert not answer.HasField("redemption")
    assert (await ana.redeem(answer.permit, execution="execution-1")).receipt
    assert gate.count("redemptions") == 1


async def test_an_execution_id_of_another_call_is_refused_and_the_decision_stays(gate, ana, call, refused):
    await ana.evaluate(call(*READ), execution_id="execution-1")
    refusal = await refused(ana.evaluate(call(*READ, "c2"), execution_id="execution-1"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_REDEEMED")
    assert [one["failed"] for one in gate.records("redeem_refused")] == [["one_time"]]
    assert (gate.count("decisions"), gate.count("redemptions")) == (2, 1)


async def test_an_operators_freeze_holds(gate, ana, call):
    await gate.person("olga").freeze("tenant", tenant="acme")
    answer = await ana.evaluate(call(*READ), execution_id="execution-1")
    assert answer.decision != ALLOW
    assert gate.count("redemptions") == 0


async def test_of_many_at_once_one_redeems(gate, ana, call):
    """The others get the permit of the decision that is there, or are told that it is redeemed."""
    answers = await asyncio.gather(
        *(ana.evaluate(call(*READ), execution_id=f"execution-{number}") for number in range(12)), return_exceptions=True
    )
    won = [one for one in answers if not isinstance(one, BaseException) and one.HasField("redemption")]
    assert len(won) == 1
    assert gate.count("redemptions") == len(gate.records("redeemed")) == 1
    refusals = {refusal_of(one).reason for one in answers if isinstance(one, BaseException)}
    assert refusals <= {"ALREADY_REDEEMED"}


@pytest.mark.parametrize("table", ["audit_entries", "decisions", "redemptions"])
async def test_without_a_record_nothing_is_answered_and_nothing_is_kept(gate, ana, call, refused, table):
    before = {name: gate.count(name) for name in ("audit_entries", "decisions", "redemptions")}
    gate.fail_writes(table)
    refusal = await refused(ana.evaluate(call(*READ), execution_id="execution-1"))
    assert refusal.code == grpc.StatusCode.UNAVAILABLE
    assert {name: gate.count(name) for name in before} == before


@pytest.mark.parametrize("execution", ["short", "x" * 129, "with blank ", "ñandú-12345"])
async def test_an_execution_id_of_another_form_is_refused(gate, ana, call, refused, execution):
    refusal = await refused(ana.evaluate(call(*READ), execution_id=execution))
    assert (refusal.code, refusal.fields) == (grpc.StatusCode.INVALID_ARGUMENT, ["execution_id"])
    assert gate.count("decisions") == 0


async def test_a_batch_redeems_nothing(gate, ana, call):
    one = riskgate_pb2.EvaluateRequest(call=call(*READ), thread_id="t1", run_id="r1", execution_id="execution-1")
    two = riskgate_pb2.EvaluateRequest(call=call(*READ, "c2"), thread_id="t1", run_id="r1")
    request = riskgate_pb2.EvaluateBatchRequest(requests=[one, two])
    refused, decided = (await ana.decisions.EvaluateBatch(request, metadata=ana.metadata, timeout=60)).results
    assert [each.field for each in refused.error.field_violations] == ["execution_id"]
    assert decided.response.decision == ALLOW
    assert (gate.count("decisions"), gate.count("redemptions")) == (1, 0)
