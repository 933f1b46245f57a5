"""A permit yields at most one effect."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from phylactery_chassis.auth.jws import TokenType, sign, verify

READ = ("read_file", '{"path":"a.txt"}')


async def test_the_same_execution_gets_the_same_receipt_again_even_after_the_permits_end(gate, ana):
    answer = await ana.permitted()
    first = await ana.redeem(answer.permit)
    gate.clock.advance(3_600)
    again = await ana.redeem(answer.permit)
    assert (again.receipt, again.bound_call, again.redeem_time) == (first.receipt, first.bound_call, first.redeem_time)
    assert (first.repeated_redeem, again.repeated_redeem) == (False, True)
    assert len(gate.records("redeemed")) == 1


async def test_another_execution_is_refused_for_ever(gate, ana, refused):
    answer = await ana.permitted()
    await ana.redeem(answer.permit)
    refusal = await refused(ana.redeem(answer.permit, execution="execution-2"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "ALREADY_REDEEMED")
    assert refusal.metadata["factor"] == "one_time"
    assert [record["failed"] for record in gate.records("redeem_refused")] == [["one_time"]]


async def test_a_fresh_permit_after_the_redeem_serves_the_same_execution_alone(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    first = await ana.redeem(answer.permit, call(*READ))
    gate.clock.advance(61)
    fresh = await ana.evaluate(call(*READ))
    assert fresh.permit != answer.permit
    again = await ana.redeem(fresh.permit, call(*READ))
    assert (again.receipt, again.repeated_redeem) == (first.receipt, True)
    refusal = await refused(ana.redeem(fresh.permit, call(*READ), execution="execution-2"))
    assert refusal.reason == "ALREADY_REDEEMED"


async def test_an_approval_stays_usable_by_its_own_execution_after_it_was_redeemed(gate, ana, refused):
    approval = await ana.approved()
    first = await ana.redeem((await ana.evaluate(approval=approval.id)).permit)
    gate.clock.advance(61)
    fresh = await ana.evaluate(approval=approval.id)
    assert (await ana.redeem(fresh.permit)).receipt == first.receipt
    assert (await refused(ana.redeem(fresh.permit, execution="execution-2"))).reason == "ALREADY_REDEEMED"


async def test_an_execution_id_belongs_to_one_call(ana, call, refused):
    one, two = await ana.evaluate(call(*READ)), await ana.evaluate(call(*READ, "c2"))
    await ana.redeem(one.permit, call(*READ))
    assert (await refused(ana.redeem(two.permit, call(*READ, "c2")))).reason == "ALREADY_REDEEMED"


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"call": ("read_file", '{"path":"b.txt"}')}, ("ARGS_MISMATCH", "argument_hash")),
        ({"call": ("echo", '{"text":"a"}')}, ("PERMIT_INVALID", "tool")),
        ({"call": (*READ, "c2")}, ("PERMIT_INVALID", "tool_call_id")),
        ({"thread": "t2"}, ("THREAD_MISMATCH", "thread")),
        ({"run": "r2"}, ("PERMIT_INVALID", "run")),
        ({"by": "ben"}, ("PERMIT_INVALID", "user")),
        ({"by": "zoe"}, ("PERMIT_INVALID", "tenant")),
    ],
)
async def test_a_permit_used_for_anything_else_is_refused_by_name_and_recorded(gate, call, refused, changes, told):
    ana = gate.person("ana")
    permit = (await ana.evaluate(call(*READ))).permit
    changes = dict(changes)
    who = gate.person(changes.pop("by", "ana"))
    asked = call(*changes.pop("call", READ))
    refusal = await refused(who.redeem(permit, asked, **changes))
    assert refusal.code == grpc.StatusCode.FAILED_PRECONDITION
    assert (refusal.reason, refusal.metadata["factor"]) == told
    assert [record["failed"] for record in gate.records("redeem_refused")] == [[told[1]]]
    assert (await ana.redeem(permit, call(*READ))).receipt


async def test_arguments_that_cannot_be_read_any_more_are_not_what_was_permitted(ana, call, refused):
    permit = (await ana.evaluate(call(*READ))).permit
    for broken in ('{"path":"a.txt","path":"a.txt"}', '{"path":3}', "{"):
        assert (await refused(ana.redeem(permit, call("read_file", broken)))).reason == "ARGS_MISMATCH"


async def test_a_permit_is_refused_after_its_end_and_within_it_the_skew_is_forward_only(gate, ana, call, refused):
    permit = (await ana.evaluate(call(*READ))).permit
    gate.clock.advance(-31)
    assert (await refused(ana.redeem(permit, call(*READ)))).reason == "PERMIT_EXPIRED"
    gate.clock.advance(31 + 60)
    refusal = await refused(ana.redeem(permit, call(*READ)))
    assert (refusal.reason, refusal.metadata["factor"]) == ("PERMIT_EXPIRED", "expiry")


async def test_what_is_no_permit_of_ours_is_refused(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    receipt = (await ana.redeem(answer.permit, call(*READ))).receipt
    other = await ana.evaluate(call(*READ, "c2"))
    head, body, signature = other.permit.split(".")
    altered = ("B" if signature[0] == "A" else "A") + signature[1:]
    for forged in ("x", "a.b.c", receipt, f"{head}.{body}.{altered}", f"{head}.{body}A.{signature}"):
        refusal = await refused(ana.redeem(forged, call(*READ, "c2"), execution="execution-2"))
        assert (refusal.reason, refusal.metadata["factor"]) == ("PERMIT_INVALID", "signature"), forged[:20]
    assert gate.count("redemptions") == 1


async def test_a_genuine_permit_for_a_decision_nobody_recorded_is_refused(gate, ana, call, refused):
    answer = await ana.evaluate(call(*READ))
    claims = dict(verify(answer.permit, TokenType.PERMIT, gate.keys.verifying).values)
    for change in ({"decision_id": "de_none"}, {"iss": "other"}, {"aud": "executor"}):
        permit = sign(claims | change, TokenType.PERMIT, gate.keys.kid, gate.keys.signer)
        assert (await refused(ana.redeem(permit, call(*READ)))).reason == "PERMIT_INVALID"


async def test_the_current_policy_decides_again_at_redeem(make_gate, bundle_with, call, refused):
    gate = await make_gate()
    permit = (await gate.person("ana").evaluate(call(*READ))).permit
    await gate.stop()
    stricter = (
        '@id("stop")\n@title("x")\n@title_es("x")\nforbid (principal, action in Action::"effect:read", resource);'
    )
    again = await make_gate(bundle=bundle_with(policies=stricter, revision=2))
    refusal = await refused(again.person("ana").redeem(permit, call(*READ)))
    assert (refusal.reason, refusal.metadata["decision"]) == ("POLICY_CHANGED", "BLOCKED")
    assert again.count("redemptions") == 0


async def test_a_policy_that_now_asks_for_a_person_makes_an_old_permit_worthless(make_gate, bundle_with, call, refused):
    gate = await make_gate()
    permit = (await gate.person("ana").evaluate(call(*READ))).permit
    await gate.stop()
    asking = (
        '@id("ask")\n@title("x")\n@title_es("x")\nforbid (principal, action in Action::"effect:read", resource)\n'
        'unless { context.approved.contains(Class::"self") };'
    )
    again = await make_gate(bundle=bundle_with(policies=asking, revision=2))
    refusal = await refused(again.person("ana").redeem(permit, call(*READ)))
    assert (refusal.reason, refusal.metadata["decision"]) == ("POLICY_CHANGED", "AUTH_REQUIRED")


async def test_an_approval_that_expired_before_the_redeem_stops_it(gate, ana, refused):
    approval = await ana.approved()
    gate.clock.advance(570)
    permit = (await ana.evaluate(approval=approval.id)).permit
    gate.clock.advance(31)
    assert (await refused(ana.redeem(permit))).reason == "APPROVAL_EXPIRED"
    assert [record["state"] for record in gate.records("approval_closed")] == ["EXPIRED"]


async def test_of_many_executions_racing_for_one_permit_exactly_one_wins(gate, ana):
    answer = await ana.permitted()
    results = await asyncio.gather(
        *(ana.redeem(answer.permit, execution=f"execution-{number}") for number in range(64)), return_exceptions=True
    )
    won = [result for result in results if not isinstance(result, BaseException)]
    assert len(won) == 1
    assert gate.count("redemptions") == len(gate.records("redeemed")) == 1


async def test_one_execution_racing_itself_gets_one_receipt_everywhere(gate, ana):
    answer = await ana.permitted()
    results = await asyncio.gather(*(ana.redeem(answer.permit) for _ in range(16)))
    assert len({result.receipt for result in results}) == 1
    assert sum(not result.repeated_redeem for result in results) == 1


async def test_an_outcome_is_recorded_once_and_in_doubt_can_be_resolved(gate, ana, call, refused):
    await ana.redeem((await ana.evaluate(call(*READ))).permit, call(*READ))
    first = await ana.report("IN_DOUBT", error_code="TIMEOUT")
    assert await ana.report("IN_DOUBT", error_code="TIMEOUT") == first
    second = await ana.report("SUCCEEDED", result_hash="sha256:" + "a" * 64, result_size=2)
    assert second > first
    assert await ana.report("IN_DOUBT", error_code="TIMEOUT") == first
    refusal = await refused(ana.report("FAILED"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "OUTCOME_CONFLICT")
    assert refusal.metadata == {"outcome": "SUCCEEDED"}
    assert len(gate.records("outcome")) == 2


async def test_an_outcome_of_an_execution_nobody_redeemed_is_not_found(ana, refused):
    refusal = await refused(ana.report("SUCCEEDED", execution="execution-9"))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.NOT_FOUND, "EXECUTION_NOT_FOUND")
    assert refusal.metadata == {"execution_id": "execution-9"}


async def test_receipts_without_an_outcome_can_be_found(gate, ana, call):
    for number in range(2):
        asked = call(*READ, f"c{number}")
        await ana.redeem((await ana.evaluate(asked)).permit, asked, execution=f"execution-{number}")
    await ana.report("SUCCEEDED", execution="execution-0")
    assert await gate.riskgate.redemptions.without_outcome("acme", older_than_seconds=60) == []
    gate.clock.advance(61)
    missing = await gate.riskgate.redemptions.without_outcome("acme", older_than_seconds=60)
    assert [found.execution_id for found in missing] == ["execution-1"]
    assert await gate.riskgate.redemptions.without_outcome("zeta", older_than_seconds=60) == []


async def test_a_permit_for_an_earlier_contract_of_the_tool_is_worthless(make_gate, bundle_with, call, refused):
    gate = await make_gate()
    permit = (await gate.person("ana").evaluate(call(*READ))).permit
    await gate.stop()
    bundle = bundle_with(revision=2)
    tools = bundle / "tools.yaml"
    tools.write_text(tools.read_text().replace("timeout_seconds: 10", "timeout_seconds: 11"))
    again = await make_gate(bundle=bundle)
    refusal = await refused(again.person("ana").redeem(permit, call(*READ)))
    assert (refusal.reason, refusal.metadata["factor"]) == ("PERMIT_INVALID", "tool_version")
    assert again.count("redemptions") == 0


async def test_the_same_execution_gets_no_receipt_for_other_arguments(gate, ana, call, refused):
    permit = (await ana.evaluate(call(*READ))).permit
    await ana.redeem(permit, call(*READ))
    refusal = await refused(ana.redeem(permit, call(READ[0], '{"path":"other.txt"}')))
    assert (refusal.reason, refusal.metadata["factor"]) == ("ARGS_MISMATCH", "argument_hash")
    assert gate.count("redemptions") == 1


async def test_a_receipt_says_who_proposed_the_call_with_which_roles_and_by_which_bundle(gate, call):
    for person, actor, roles in ((gate.person("ana"), "", ["caller"]), (gate.through_agent("ben"), "agent", None)):
        proposed = call(*READ, f"c-{actor or 'ana'}")
        permit = (await person.evaluate(proposed)).permit
        receipt = (await person.redeem(permit, proposed, execution=f"execution-{actor or 'ana'}")).receipt
        claims = verify(receipt, TokenType.RECEIPT, gate.keys.verifying).values
        assert claims["actor"] == actor
        assert claims["roles"] == (roles or claims["roles"])
        assert claims["bundle_hash"] == gate.records("redeemed")[-1]["bundle_hash"] != ""
