"""Refusals and repeated answers are logged, so that auditors see attempts."""

from __future__ import annotations

import pytest
from phylactery_riskgate.audit.commitments import ARGS_HASH
from phylactery_riskgate.store.audit import Place


def values_of(gate, record) -> dict[str, object]:
    place = Place(record["log"], record["index"])
    return gate.database.read_sync(lambda c: gate.riskgate.audit.values(c, record["tenant"], place)) or {}


@pytest.mark.parametrize("given", ["approve", "reject", "cancel"])
async def test_a_refused_answer_says_which_answer_it_was(gate, ana, refused, given):
    approval = (await ana.evaluate()).approval
    ben = gate.person("ben")
    await refused(ben.approve(approval) if given == "approve" else getattr(ben, given)(approval.id))
    await ana.reject(approval.id)
    await refused(ana.approve(approval) if given == "approve" else getattr(gate.person("carla"), given)(approval.id))
    assert [record["answer"] for record in gate.records("approval_refused")] == [given, given]


async def test_a_refused_redeem_of_the_callers_own_permit_names_it_its_decision_and_its_approval(gate, ana, refused):
    allowed = await ana.permitted()
    await ana.redeem(allowed.permit)
    await refused(ana.redeem(allowed.permit, execution="execution-2"))
    await refused(ana.redeem(allowed.permit, run="r2"))
    head, claims, _ = allowed.permit.split(".")
    await refused(ana.redeem(f"{head}.{claims}.{'A' * 86}"))
    await refused(gate.person("ben").redeem(allowed.permit))
    done = gate.records("redeemed")[0]
    again, elsewhere, forged, stolen = gate.records("redeem_refused")
    named = ("permit_id", "decision_id", "approval_id")
    for one in (again, elsewhere):
        assert [one[name] for name in named] == [done[name] for name in named]
    assert all(done[name] for name in named)
    assert not {*named} & {*forged, *stolen}, "what is not proven to be the caller's is not repeated"


async def test_a_permit_that_replaces_an_old_one_is_recorded_before_it_is_answered(gate, ana):
    await ana.permitted()
    approval = gate.records("decision")[-1]["counted_approval_id"]
    assert (await ana.evaluate(approval=approval)).replayed
    assert gate.records("permit_renewed") == [], "the permit of before still holds"
    gate.clock.advance(61)
    again = await ana.evaluate(approval=approval)
    await ana.redeem(again.permit)
    (renewed,), (done,) = gate.records("permit_renewed"), gate.records("redeemed")
    assert (renewed["permit_id"], renewed["decision_id"]) == (done["permit_id"], again.decision_id)
    assert renewed["permit_id"] != gate.records("decision")[-1]["permit_id"]


@pytest.mark.parametrize("differs", ["arguments", "thread", "unreadable"])
async def test_another_call_under_a_place_that_is_taken_is_recorded_with_what_was_tried(
    gate, ana, call, refused, differs
):
    first = await ana.evaluate(call("read_file", '{"path":"a.txt"}'))
    text = {"arguments": '{"path":"b.txt"}', "thread": '{"path":"a.txt"}', "unreadable": '{"path":'}[differs]
    thread = "t2" if differs == "thread" else "t1"
    refusal = await refused(ana.evaluate(call("read_file", text), thread=thread))
    assert refusal.reason == "CALL_CONFLICT"
    (record,) = gate.records("evaluate_refused")
    assert (record["reason"], record["decision_id"], record["subject"]) == ("CALL_CONFLICT", first.decision_id, "ana")
    assert (record["tool"], record["tool_call_id"], record["thread_id"]) == ("read_file", "c1", thread)
    decided, tried = values_of(gate, gate.records("decision")[0]), values_of(gate, record)
    same = decided[ARGS_HASH] == tried.get(ARGS_HASH)
    assert (same, ARGS_HASH in tried) == (differs == "thread", differs != "unreadable")
    assert "b.txt" not in str(record)
