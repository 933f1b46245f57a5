"""A shadow catalog computes a task's facts with its own rules, and only reports."""

from __future__ import annotations

from phylactery.riskgate.v1 import types_pb2

from tests.riskgate.bundles.test_activation import activate
from tests.riskgate.bundles.test_shadow import decided
from tests.riskgate.tasks.test_decision_evaluate import book, transfer
from tests.support.riskgate.tasks import IBAN, UNASKED, with_tasks

ALLOW, AUTH, BLOCKED = types_pb2.DECISION_ALLOW, types_pb2.DECISION_AUTH_REQUIRED, types_pb2.DECISION_BLOCKED


RELEASED = "Release money to bob@acme.es"
"""Asks for a transfer with a verb that only a phrase of the catalog gives it."""


def releasing(bundle, **without):
    """Let the phrases of the catalog say release."""
    path = with_tasks(bundle, **without) / "tools.yaml"
    path.write_text(path.read_text().replace("send money", "release money"))
    return bundle


async def test_a_catalog_that_knows_how_people_ask_is_tried_in_the_shadow(make_gate, bundle_with, call):
    silent = releasing(bundle_with(), without=("asks",))
    gate = await make_gate("silent", bundle=silent)
    ana = gate.person("ana")
    await activate(gate.person("petra"), releasing(bundle_with(revision=2)), shadow=True)
    task, other = await ana.begin(RELEASED), await ana.begin(UNASKED, request="request-2")
    answer = await ana.evaluate(transfer(call), task_id=task)
    assert answer.decision == AUTH, "the live catalog does not know how people ask for it"
    assert (await ana.evaluate(transfer(call, call_id="c2"), task_id=other)).decision == AUTH
    await ana.evaluate(transfer(call, call_id="c3"))
    await decided(gate, 3)
    shadow = gate.riskgate.policies.shadow
    assert (shadow.decided, shadow.differed, shadow.skipped) == (3, 1, 0)
    (record,) = gate.records("shadow_difference")
    assert (record["decision_id"], record["decision"], record["shadow_decision"]) == (
        answer.decision_id,
        "AUTH_REQUIRED",
        "ALLOW",
    )
    assert record["shadow_policy_ids"] == ["write.asked"]


async def test_what_is_decided_by_recorded_facts_is_not_shown_to_a_shadow_again(make_gate, bundle_with, call):
    gate = await make_gate("live", bundle=releasing(bundle_with()))
    ana = gate.person("ana")
    task = await ana.begin(RELEASED)
    await book(ana, task)
    await activate(gate.person("petra"), releasing(bundle_with(revision=2), without=("asks",)), shadow=True)
    asked = await ana.evaluate(transfer(call, IBAN), task_id=task)
    assert asked.decision == AUTH
    approval = await ana.approve(asked.approval)
    assert (await ana.evaluate(transfer(call, IBAN), approval=approval.id)).decision == ALLOW
    plain = await ana.approved(transfer(call, IBAN, "c2"))
    assert (await ana.evaluate(transfer(call, IBAN, "c2"), approval=plain.id)).decision == ALLOW
    await decided(gate, 3)
    shadow = gate.riskgate.policies.shadow
    assert (shadow.decided, shadow.differed) == (3, 0), "the task's first decision, and both of the call without one"
