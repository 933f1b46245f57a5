"""An ask is used up when its call is redeemed: one effect, or as many as its words name; then an approval is needed."""

from __future__ import annotations

import json

import pytest
from phylactery.riskgate.v1 import explain_pb2, riskgate_pb2, types_pb2

from tests.support.riskgate.tasks import ASKED, KNOWN, arguments, with_tasks

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED
OTHER = "eve@acme.es"
BOTH = f"Send money to {KNOWN} and to {OTHER}"
TRANSFERS = (
    '@id("transfers.allow") @title("Whoever asks, money is sent") permit (principal, action == Action::"transfer", '
    "resource);\n"
)


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.fixture
async def gate(make_gate, shared_database):
    return await make_gate(**({"database_url": shared_database} if shared_database else {}))


def transfer(call, call_id: str = "c1", to: str = KNOWN, **more: str) -> types_pb2.ToolCall:
    return call("transfer", arguments(to, **more), call_id)


async def run(person, task: str, proposed: types_pb2.ToolCall) -> riskgate_pb2.EvaluateResponse:
    """Evaluate and redeem a call that is allowed."""
    answer = await person.evaluate(proposed, task_id=task)
    assert answer.decision == ALLOW
    await person.redeem(answer.permit, proposed, execution=f"execution-{proposed.tool_call_id}")
    return answer


async def test_one_request_is_one_effect_and_the_next_call_is_asked_about(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    again = await ana.evaluate(transfer(call, "c2"), task_id=task)
    assert (again.decision, again.permit, again.approval.approval_class) == (AUTH, "", "self")
    assert gate.count("ask_uses") == 1


async def test_of_two_permits_for_one_ask_the_first_redeemed_wins_and_the_other_is_refused_on_record(
    gate, ana, call, refused
):
    task = await ana.begin(ASKED)
    first, second = [await ana.evaluate(transfer(call, one), task_id=task) for one in ("c1", "c2")]
    assert (first.decision, second.decision) == (ALLOW, ALLOW), "while nothing is redeemed, nothing is used up"
    await ana.redeem(second.permit, transfer(call, "c2"))
    refusal = await refused(ana.redeem(first.permit, transfer(call), execution="execution-2"))
    assert (refusal.reason, refusal.metadata) == (
        "ASK_USED_UP",
        {"factor": "ask", "ask": f"{task}/1", "quota": "1"},
    )
    assert "ask the person again" in refusal.message
    (record,) = gate.records("redeem_refused")
    assert (record["reason"], record["failed"], record["tool_call_id"]) == ("ASK_USED_UP", ["ask"], "c1")
    assert (gate.count("ask_uses"), gate.count("redemptions")) == (1, 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (again.decision, again.permit, again.reasons[0].code, again.replayed) == (ALLOW, "", "ASK_USED_UP", True)


async def test_the_same_execution_counts_once_however_often_it_redeems(gate, ana, call):
    task = await ana.begin(ASKED)
    answer = await ana.evaluate(transfer(call), task_id=task)
    receipts = {(await ana.redeem(answer.permit, transfer(call))).receipt for _ in range(3)}
    assert (len(receipts), gate.count("ask_uses")) == (1, 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert again.permit, "a process that died meanwhile gets the receipt by it"
    assert (await ana.redeem(again.permit, transfer(call))).repeated_redeem
    assert gate.count("ask_uses") == 1


async def test_who_names_two_gets_two_and_no_third(gate, ana, call):
    task = await ana.begin(BOTH)
    for number, to in enumerate((KNOWN, OTHER)):
        await run(ana, task, transfer(call, f"c{number}", to))
    assert (await ana.evaluate(transfer(call, "c9"), task_id=task)).decision == AUTH
    assert [record["ask"]["left"] for record in gate.records("redeemed")] == [1, 0]


async def test_who_names_two_gets_each_once(gate, ana, call, refused):
    task = await ana.begin(BOTH)
    first, again = [await ana.evaluate(transfer(call, one), task_id=task) for one in ("c1", "c2")]
    await ana.redeem(first.permit, transfer(call))
    refusal = await refused(ana.redeem(again.permit, transfer(call, "c2"), execution="execution-2"))
    assert refusal.reason == "ASK_USED_UP"
    assert (await ana.evaluate(transfer(call, "c3"), task_id=task)).decision == AUTH
    await run(ana, task, transfer(call, "c4", OTHER))


async def test_two_requests_of_one_message_are_used_up_each_for_itself(ana, call):
    task = await ana.begin(f"{ASKED}. Send money to {OTHER}.")
    await run(ana, task, transfer(call, "c1"))
    assert (await ana.evaluate(transfer(call, "c2"), task_id=task)).decision == AUTH
    await run(ana, task, transfer(call, "c3", OTHER))


async def test_the_same_request_said_twice_is_two(ana, call):
    task = await ana.begin(f"{ASKED}. {ASKED}.")
    await run(ana, task, transfer(call, "c1"))
    await run(ana, task, transfer(call, "c2"))
    assert (await ana.evaluate(transfer(call, "c3"), task_id=task)).decision == AUTH


async def test_a_yes_confirms_what_is_not_used_up_and_a_new_request_is_a_new_ask(ana, call):
    first = await ana.begin(ASKED)
    await run(ana, first, transfer(call, "c1"))
    confirmed = await ana.begin("yes", request="request-2", continues=first)
    assert (await ana.evaluate(transfer(call, "c2"), task_id=confirmed)).decision == AUTH
    repeated = await ana.begin(ASKED, request="request-3", continues=confirmed)
    await run(ana, repeated, transfer(call, "c3"))


async def test_a_yes_uses_up_the_ask_it_confirms(gate, ana, call):
    first = await ana.begin(ASKED)
    confirmed = await ana.begin("yes", request="request-2", continues=first)
    await run(ana, confirmed, transfer(call, "c1"))
    (record,) = gate.records("redeemed")
    assert record["ask"] == {"id": f"{first}/1", "used": 1, "left": 0}
    assert (await ana.evaluate(transfer(call, "c2"), task_id=first)).decision == AUTH


async def test_a_correction_takes_the_earlier_call_back_and_yields_the_one_it_names(ana, call, refused):
    first = await ana.begin(ASKED)
    permit = (await ana.evaluate(transfer(call, "c1"), task_id=first)).permit
    later = await ana.begin(f"no, {OTHER}", request="request-2", continues=first)
    assert (await refused(ana.redeem(permit, transfer(call, "c1")))).reason == "PERMIT_RETRACTED"
    assert (await ana.evaluate(transfer(call, "c2"), task_id=later)).decision == AUTH
    await run(ana, later, transfer(call, "c3", OTHER))


async def test_what_was_done_is_not_done_once_more_in_another_way_unasked(ana, call):
    first = await ana.begin(ASKED)
    await run(ana, first, transfer(call, "c1"))
    corrected = await ana.begin(f"no, {OTHER}", request="request-2", continues=first)
    assert (await ana.evaluate(transfer(call, "c2", OTHER), task_id=corrected)).decision == AUTH
    added = await ana.begin(f"and {OTHER} too", request="request-3", continues=first)
    await run(ana, added, transfer(call, "c3", OTHER))


async def test_a_call_that_a_person_approved_uses_nothing_up(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call, "c1"))
    asked = await ana.evaluate(transfer(call, "c2"), task_id=task)
    approval = await ana.approve(asked.approval)
    answer = await ana.evaluate(transfer(call, "c2"), approval=approval.id)
    await ana.redeem(answer.permit, transfer(call, "c2"), execution="execution-2")
    assert gate.count("ask_uses") == 1
    assert "ask" not in gate.records("redeemed")[1]


async def test_what_a_person_approved_is_not_done_once_more_unasked(ana, call):
    task = await ana.begin(ASKED)
    longer = transfer(call, "c1", note="rent of May")
    asked = await ana.evaluate(longer, task_id=task)
    approval = await ana.approve(asked.approval)
    answer = await ana.evaluate(longer, approval=approval.id)
    await ana.redeem(answer.permit, longer)
    seen = {"arguments_json": longer.arguments_json, "result_text": "sent", "run_id": "r1"}
    assert not (await ana.observe(task, "c1", tool="transfer", **seen)).unproven
    again = await ana.evaluate(transfer(call, "c2"), task_id=task)
    assert (again.decision, again.permit, again.approval.approval_class) == (AUTH, "", "self")
    other = await ana.begin(ASKED, request="request-2", continues=task)
    await run(ana, other, transfer(call, "c3"))


@pytest.mark.slow
async def test_what_policies_allow_without_any_ask_is_not_held_back_by_one(make_gate, bundle_with, call):
    gate = await make_gate("open", bundle=with_tasks(bundle_with(policies=TRANSFERS)))
    ana = gate.person("ana")
    task = await ana.begin(ASKED)
    answers = [await ana.evaluate(transfer(call, one), task_id=task) for one in ("c1", "c2")]
    for answer, one in zip(answers, ("c1", "c2"), strict=True):
        await ana.redeem(answer.permit, transfer(call, one), execution=f"execution-{one}")
    assert gate.count("redemptions") == 2


async def test_reading_uses_nothing_up(gate, ana, call):
    task = await ana.begin("Read notes.txt")
    for one in ("c1", "c2", "c3"):
        await run(ana, task, call("read_file", '{"path":"notes.txt"}', one))
    assert gate.count("ask_uses") == 0


async def test_users_and_tenants_use_up_their_own(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    for name in ("ben", "zoe"):
        person = gate.person(name)
        theirs = await person.begin(ASKED)
        await run(person, theirs, transfer(call))
    assert gate.count("ask_uses") == 3


async def test_what_was_used_up_goes_with_its_task(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    await ana.end_task(task)
    assert gate.count("ask_uses") == 1, "permits of its calls may still be redeemed"
    gate.clock.advance(gate.settings.task_ttl_seconds + 3_601)
    assert await gate.riskgate.tasks.prune() == 1
    assert gate.count("ask_uses") == 0


# ---- what is told of it ---------------------------------------------------------------------------------------------


async def test_records_and_explanations_name_the_ask_and_what_is_left_of_it(gate, ana, call):
    task = await ana.begin(BOTH)
    answer = await run(ana, task, transfer(call, "c1"))
    decided, redeemed = gate.records("decision")[0], gate.records("redeemed")[0]
    assert decided["ask"] == {"id": f"{task}/1", "used": 0, "left": 2}
    assert redeemed["ask"] == {"id": f"{task}/1", "used": 1, "left": 1}
    recorded = explain_pb2.ExplainRequest(decision_id=answer.decision_id)
    imagined = explain_pb2.ExplainRequest(call=transfer(call, "c2", OTHER), task_id=task, thread_id="t1")
    for request, left in ((recorded, 2), (imagined, 1)):
        explained = await ana.decisions.Explain(request, metadata=ana.metadata, timeout=60)
        facts = {fact.name: json.loads(fact.value) for fact in explained.facts if fact.name.startswith("ask")}
        assert (facts["ask"], facts["ask.used"], facts["ask.left"]) == (f"{task}/1", 2 - left, left)


async def test_a_call_without_an_ask_says_nothing_of_one(gate, ana, call):
    task = await ana.begin("What is the weather like?")
    await ana.evaluate(transfer(call), task_id=task)
    assert "ask" not in gate.records("decision")[0]


async def test_the_same_call_under_the_recorded_facts_is_decided_the_same_after_its_ask_was_used_up(gate, ana, call):
    task = await ana.begin(ASKED)
    first = await ana.evaluate(transfer(call, "c1"), task_id=task)
    await run(ana, task, transfer(call, "c2"))
    asked = await ana.evaluate(transfer(call, "c3"), task_id=task)
    for answer, decision in ((first, ALLOW), (asked, AUTH)):
        request = explain_pb2.ExplainRequest(decision_id=answer.decision_id)
        explained = await ana.decisions.Explain(request, metadata=ana.metadata, timeout=60)
        assert explained.decision == decision


# ---- how long a permit is renewed -----------------------------------------------------------------------------------


async def test_a_permit_is_renewed_while_its_task_is_open(gate, ana, call):
    task = await ana.begin(ASKED)
    first = await ana.evaluate(transfer(call), task_id=task)
    gate.clock.advance(gate.settings.permit_ttl_seconds + 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert again.permit
    assert again.permit != first.permit


async def test_a_permit_is_not_renewed_once_its_task_ended_and_the_answer_says_why(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    first = await ana.evaluate(transfer(call), task_id=task)
    await ana.end_task(task)
    assert (await ana.evaluate(transfer(call), task_id=task)).permit, "the one it has is as good as it was"
    gate.clock.advance(gate.settings.permit_ttl_seconds + 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (again.decision, again.permit, again.replayed) == (ALLOW, "", True)
    assert (again.reasons[0].code, again.HasField("bound_call")) == ("TASK_ENDED", False)
    assert (await refused(ana.redeem(first.permit, transfer(call)))).reason == "PERMIT_EXPIRED"
    assert not gate.records("permit_renewed")


@pytest.mark.slow
async def test_a_permit_is_renewed_no_longer_than_its_task_lives(gate, ana, call):
    task = await ana.begin(ASKED)
    await ana.evaluate(transfer(call), task_id=task)
    gate.clock.advance(gate.settings.task_ttl_seconds + 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (again.decision, again.permit, again.reasons[0].code) == (ALLOW, "", "TASK_ENDED")


async def test_a_permit_is_renewed_no_longer_than_the_task_that_asked_for_it_lives(gate, ana, call):
    first = await ana.begin(ASKED)
    gate.clock.advance(gate.settings.task_ttl_seconds - 100)
    later = await ana.begin("yes", request="request-2", continues=first)
    assert (await ana.evaluate(transfer(call), task_id=later)).permit
    gate.clock.advance(200)
    again = await ana.evaluate(transfer(call), task_id=later)
    assert (again.permit, again.reasons[0].code) == ("", "TASK_ENDED")


async def test_a_call_that_is_redeemed_gets_its_receipt_also_after_its_task_ended(gate, ana, call):
    task = await ana.begin(ASKED)
    answer = await ana.evaluate(transfer(call), task_id=task)
    receipt = (await ana.redeem(answer.permit, transfer(call))).receipt
    await ana.end_task(task)
    gate.clock.advance(gate.settings.permit_ttl_seconds + 1)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (await ana.redeem(again.permit, transfer(call))).receipt == receipt


async def test_an_attempt_that_did_nothing_uses_up_no_ask(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    await ana.report("FAILED", execution="execution-c1", error_code="SERVER_UNAVAILABLE", not_done=True)
    assert (gate.count("ask_uses"), gate.records("outcome")[-1]["ask_free"]) == (0, True)
    await run(ana, task, transfer(call, "c2"))
    assert (await ana.evaluate(transfer(call, "c3"), task_id=task)).decision == AUTH, "that one was done"
    await ana.report("FAILED", execution="execution-c1", error_code="SERVER_UNAVAILABLE", not_done=True)
    assert (await ana.evaluate(transfer(call, "c4"), task_id=task)).decision == AUTH, "the report again frees nothing"


async def test_of_two_that_were_named_the_one_that_did_nothing_is_tried_again(gate, ana, call):
    task = await ana.begin(BOTH)
    for number, to in enumerate((KNOWN, OTHER)):
        await run(ana, task, transfer(call, f"c{number}", to))
    await ana.report("FAILED", execution="execution-c1", not_done=True)
    assert (await ana.evaluate(transfer(call, "c2", KNOWN), task_id=task)).decision == AUTH
    await run(ana, task, transfer(call, "c3", OTHER))


async def test_a_call_that_may_have_happened_stays_used_up_until_somebody_says_that_it_did_not(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    await ana.report("IN_DOUBT", execution="execution-c1")
    assert (await ana.evaluate(transfer(call, "c2"), task_id=task)).decision == AUTH
    await ana.report("FAILED", execution="execution-c1", not_done=True)
    assert (await ana.evaluate(transfer(call, "c3"), task_id=task)).decision == ALLOW


@pytest.mark.parametrize("outcome", ["SUCCEEDED", "IN_DOUBT"])
async def test_only_a_failure_may_be_said_to_have_done_nothing(gate, ana, call, refused, outcome):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    refusal = await refused(ana.report(outcome, execution="execution-c1", not_done=True))
    assert (refusal.reason, refusal.fields) == ("INVALID_REQUEST", ["not_done"])
    assert gate.count("ask_uses") == 1


async def test_a_failure_of_unknown_extent_stays_used_up(gate, ana, call):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    await ana.report("FAILED", execution="execution-c1")
    assert (await ana.evaluate(transfer(call, "c2"), task_id=task)).decision == AUTH
    assert "ask_free" not in gate.records("outcome")[-1]


async def test_nobody_frees_the_ask_of_another(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    await run(ana, task, transfer(call))
    refusal = await refused(gate.person("ben").report("FAILED", execution="execution-c1", not_done=True))
    assert refusal.reason == "EXECUTION_NOT_FOUND"
    assert (await ana.evaluate(transfer(call, "c2"), task_id=task)).decision == AUTH
