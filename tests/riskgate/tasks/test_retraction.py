"""Retractions apply to earlier requests: approvals close, permits are void, and the log records it."""

from __future__ import annotations

import pytest
from phylactery.riskgate.v1 import explain_pb2, types_pb2

from tests.support.riskgate.tasks import ASKED, KNOWN, arguments, with_tasks

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED
CANCELLED, PENDING = types_pb2.APPROVAL_STATE_CANCELLED, types_pb2.APPROVAL_STATE_PENDING
OTHER = "eve@acme.es"
UNCLEAR = f"Send some money to {KNOWN}, if you feel like it"


@pytest.fixture
def bundle(bundle_with):
    return with_tasks(bundle_with())


@pytest.fixture
async def gate(make_gate, shared_database):
    return await make_gate(**({"database_url": shared_database} if shared_database else {}))


def transfer(call, call_id: str = "c1", to: str = KNOWN) -> types_pb2.ToolCall:
    return call("transfer", arguments(to), call_id)


async def say(person, words: str, earlier: str, **more: str) -> str:
    """Begin the task of the next message of the conversation."""
    return await person.begin(words, request=f"after-{earlier}", continues=earlier, **more)


async def asked(person, call, call_id: str = "c1", to: str = KNOWN) -> tuple[str, types_pb2.Approval]:
    """Propose a call that is half asked for; return its task and the approval that waits."""
    task = await person.begin(UNCLEAR, request=f"request-{call_id}")
    answer = await person.evaluate(transfer(call, call_id, to), task_id=task)
    assert answer.decision == AUTH
    return task, answer.approval


@pytest.mark.parametrize(
    "words", ["No", "Never mind", "Don't send it", "No, wait! Never send it", "Déjalo", "No lo envíes"]
)
async def test_a_refusal_voids_the_permit_and_the_log_says_by_what(gate, ana, call, refused, words):
    task = await ana.begin(ASKED)
    permit = (await ana.evaluate(transfer(call), task_id=task)).permit
    later = await say(ana, words, task)
    refusal = await refused(ana.redeem(permit, transfer(call)))
    assert (refusal.reason, refusal.metadata) == ("PERMIT_RETRACTED", {"factor": "retraction", "task_id": later})
    begun, (record,) = gate.records("task_begun")[1], gate.records("redeem_refused")
    assert (begun["retracts"]["tasks"], begun["retracts"]["approvals"]) == ([task], [])
    assert (record["reason"], record["failed"]) == ("PERMIT_RETRACTED", ["retraction"])
    assert gate.count("redemptions") == gate.count("ask_uses") == 0


async def test_a_call_that_was_decided_gets_no_permit_again_after_it_was_taken_back(gate, ana, call):
    task = await ana.begin(ASKED)
    assert (await ana.evaluate(transfer(call), task_id=task)).permit
    await say(ana, "No, stop", task)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (again.decision, again.permit, again.reasons[0].code, again.replayed) == (
        ALLOW,
        "",
        "PERMIT_RETRACTED",
        True,
    )
    gate.clock.advance(gate.settings.permit_ttl_seconds + 1)
    assert not (await ana.evaluate(transfer(call), task_id=task)).permit
    assert not gate.records("permit_renewed")


@pytest.mark.parametrize("approve", [False, True])
async def test_an_approval_that_is_not_redeemed_is_cancelled_and_says_why(gate, ana, call, refused, approve):
    task, approval = await asked(ana, call)
    if approve:
        await ana.approve(approval)
        permit = (await ana.evaluate(transfer(call), approval=approval.id)).permit
    later = await say(ana, "Never mind", task)
    closed = await ana.get(approval.id)
    assert (closed.state, closed.closed_reason) == (CANCELLED, "RETRACTED")
    (record,) = gate.records("approval_closed")
    assert (record["approval_id"], record["closed_reason"], record["retracted_by"]) == (approval.id, "RETRACTED", later)
    assert gate.records("task_begun")[1]["retracts"]["approvals"] == [approval.id]
    assert (await refused(ana.evaluate(transfer(call), approval=approval.id))).reason == "APPROVAL_NOT_PENDING"
    if approve:
        assert (await refused(ana.redeem(permit, transfer(call)))).reason == "PERMIT_RETRACTED"
    else:
        assert (await refused(ana.approve(approval))).reason == "APPROVAL_NOT_PENDING"


async def test_who_watches_sees_it(gate, ana, call):
    task, approval = await asked(ana, call)
    await say(ana, "No", task)
    seen = (await ana.list(state=CANCELLED)).approvals
    assert [(one.id, one.closed_reason) for one in seen] == [(approval.id, "RETRACTED")]
    changes = gate.database.read_sync(
        lambda connection: connection.exec_driver_sql(
            "SELECT closed_reason FROM approval_changes ORDER BY version"
        ).all()
    )
    assert [one[0] for one in changes] == ["", "RETRACTED"]


@pytest.mark.parametrize(
    "words", ["Yes", "I am not sure yet, what is it for?", "Is it dangerous?", "And what is the weather?", "No problem"]
)
async def test_what_takes_nothing_back_leaves_the_approval_to_the_person(gate, ana, call, words):
    task, approval = await asked(ana, call)
    await say(ana, words, task)
    assert (await ana.get(approval.id)).state == PENDING
    assert "retracts" not in gate.records("task_begun")[1]
    assert gate.count("retractions") == 0


async def test_who_forbids_one_thing_forbids_that_one(gate, ana, call, refused):
    task = await ana.begin(f"Send money to {KNOWN} and to {OTHER}")
    first, second = [
        await ana.evaluate(transfer(call, one, to), task_id=task) for one, to in (("c1", KNOWN), ("c2", OTHER))
    ]
    later = await say(ana, f"Don't send money to {OTHER}", task)
    refusal = await refused(ana.redeem(second.permit, transfer(call, "c2", OTHER)))
    assert (refusal.reason, refusal.metadata["task_id"]) == ("PERMIT_RETRACTED", later)
    assert (await ana.redeem(first.permit, transfer(call), execution="execution-2")).receipt
    kept = gate.database.read_sync(
        lambda connection: bytes(connection.exec_driver_sql("SELECT forbidden FROM retractions").scalar_one())
    )
    assert OTHER.encode() not in kept
    assert OTHER not in str(gate.records("task_begun"))


async def test_what_has_another_effect_is_not_forbidden_with_it(ana, call):
    task, approval = await asked(ana, call)
    await say(ana, "Don't delete anything", task)
    assert (await ana.get(approval.id)).state == PENDING


async def test_it_reaches_every_task_of_the_chain_and_no_other(gate, ana, call, refused):
    first = await ana.begin(ASKED)
    one = await ana.evaluate(transfer(call), task_id=first)
    second = await say(ana, f"Send money to {OTHER}", first)
    two = await ana.evaluate(transfer(call, "c2", OTHER), task_id=second)
    apart = await ana.begin(f"Send money to {OTHER}", request="apart")
    three = await ana.evaluate(transfer(call, "c3", OTHER), task_id=apart)
    await say(ana, "Never mind", second)
    for answer, proposed in ((one, transfer(call)), (two, transfer(call, "c2", OTHER))):
        assert (await refused(ana.redeem(answer.permit, proposed))).reason == "PERMIT_RETRACTED"
    assert (await ana.redeem(three.permit, transfer(call, "c3", OTHER))).receipt
    assert gate.records("task_begun")[3]["retracts"]["tasks"] == [second, first]


async def test_an_ask_that_was_taken_back_is_not_confirmed_elsewhere(ana, call, refused):
    """Two messages go on from one; the one that says no takes back what the other has confirmed."""
    task = await ana.begin(ASKED)
    confirmed = await ana.begin("yes", request="yes", continues=task)
    permit = (await ana.evaluate(transfer(call), task_id=confirmed)).permit
    await say(ana, "No", task)
    assert (await refused(ana.redeem(permit, transfer(call)))).reason == "PERMIT_RETRACTED"
    assert (await ana.evaluate(transfer(call, "c2"), task_id=confirmed)).decision == BLOCKED


async def test_a_new_call_of_a_task_that_was_taken_back_is_refused_and_recorded_so(gate, ana, call):
    task = await ana.begin(ASKED)
    later = await say(ana, "Never mind", task)
    answer = await ana.evaluate(transfer(call), task_id=task)
    assert (answer.decision, list(answer.policy_ids)) == (BLOCKED, ["write.refused"])
    assert gate.records("decision")[0]["task_id"] == task
    assert later in str(await facts_of(ana, answer.decision_id))


async def facts_of(person, decision_id: str) -> dict[str, str]:
    request = explain_pb2.ExplainRequest(decision_id=decision_id)
    explained = await person.decisions.Explain(request, metadata=person.metadata, timeout=60)
    return {fact.name: fact.value for fact in explained.facts}


async def test_what_was_redeemed_before_stays_and_gets_its_receipt_again(gate, ana, call):
    task = await ana.begin(ASKED)
    permit = (await ana.evaluate(transfer(call), task_id=task)).permit
    receipt = (await ana.redeem(permit, transfer(call))).receipt
    await say(ana, "No", task)
    again = await ana.evaluate(transfer(call), task_id=task)
    assert (await ana.redeem(again.permit, transfer(call))).receipt == receipt
    assert not gate.records("redeem_refused")


@pytest.mark.slow
async def test_calls_without_a_task_and_of_others_are_left_alone(gate, ana, call):
    untold = await ana.evaluate(transfer(call, "c0"))
    ben = gate.person("ben")
    _, theirs = await asked(ben, call)
    task = await ana.begin(ASKED)
    await say(ana, "No", task)
    assert (await ana.get(untold.approval.id)).state == PENDING
    assert (await ben.get(theirs.id)).state == PENDING


async def test_begun_again_it_takes_nothing_back_twice(gate, ana, call):
    task, _ = await asked(ana, call)
    later = {await say(ana, "No", task) for _ in range(3)}
    assert (len(later), gate.count("retractions"), len(gate.records("approval_closed"))) == (1, 1, 1)


async def test_it_outlives_the_message_that_said_it_and_goes_with_the_task(gate, ana, call, refused):
    task = await ana.begin(ASKED)
    permit = (await ana.evaluate(transfer(call), task_id=task)).permit
    later = await say(ana, "Don't send it", task)
    await ana.end_task(later)
    assert (await refused(ana.redeem(permit, transfer(call)))).reason == "PERMIT_RETRACTED"
    gate.clock.advance(gate.settings.task_ttl_seconds + 3_601)
    await gate.riskgate.tasks.prune()
    assert gate.count("retractions") == 0
