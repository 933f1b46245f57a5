"""Eligibility of approvers by group and level: checked at the vote, and again whenever the vote is counted."""

from __future__ import annotations

import json
from copy import deepcopy
from pathlib import Path
from typing import Any

import grpc
import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle

from tests.riskgate.bundles.test_activation import activate

APPROVED, PENDING = types_pb2.APPROVAL_STATE_APPROVED, types_pb2.APPROVAL_STATE_PENDING
PAY = ("pay", '{"to":"x","note":"n"}')
WIPE = ("wipe", '{"path":"x"}')
SELF = {"name": "self", "approvers": 1, "who": "requester"}


def classes(peer: dict[str, Any] | None = None, *, needed: int = 2) -> list[dict[str, Any]]:
    """Two classes above self; what the peer is asked, two people are asked too."""
    above = [
        {"name": "peer", "approvers": 1, "who": "not_requester"},
        {"name": "dual", "approvers": needed, "who": "not_requester"},
    ]
    return [SELF, *(one | ({"eligible": deepcopy(peer)} if peer else {}) for one in above)]


def with_entities(bundle: Path, *users: dict[str, Any]) -> Path:
    entries = [{"tenant": "acme", **user} for user in users]
    (bundle / "entities.json").write_text(json.dumps({"groups": ["payments", "ops"], "users": entries}))
    return bundle


async def go_live(gate: Any, bundle: Path) -> None:
    """Let another bundle decide from now on."""
    await activate(gate.person("petra"), bundle)


async def test_only_somebody_of_the_group_approves_whether_the_token_or_the_bundle_says_so(
    make_gate, bundle_with, call, refused
):
    bundle = with_entities(
        bundle_with(classes=classes({"groups": ["payments"]})), {"id": "carla", "groups": ["payments"]}
    )
    gate = await make_gate(bundle=bundle)
    ana = gate.person("ana")
    for number, (name, may) in enumerate([("dora", False), ("gina", True), ("carla", True)]):
        approval = (await ana.evaluate(call(*PAY, f"c{number}"))).approval
        if may:
            assert (await gate.person(name).approve(approval)).state == APPROVED
            continue
        refusal = await refused(gate.person(name).approve(approval))
        assert (refusal.code, refusal.reason) == (grpc.StatusCode.PERMISSION_DENIED, "NOT_ELIGIBLE")
        assert refusal.metadata["factor"] == "approver"
        assert "peer" in refusal.message
    assert [record["failed"] for record in gate.records("approval_refused")] == [["approver"]]


async def test_a_level_is_asked_as_a_group_is_and_both_together(make_gate, bundle_with, call, refused):
    bundle = with_entities(
        bundle_with(classes=classes({"groups": ["payments"], "levels": ["admin"]})),
        {"id": "carla", "groups": ["payments"]},
        {"id": "dora", "groups": ["payments"], "level": "admin"},
    )
    gate = await make_gate(bundle=bundle)
    approval = (await gate.person("ana").evaluate(call(*WIPE))).approval
    assert (await refused(gate.person("carla").approve(approval))).metadata["factor"] == "approver"
    await gate.person("gina").approve(approval)
    assert (await gate.person("dora").approve(approval)).state == APPROVED


async def test_a_group_of_another_tenant_counts_for_nothing(make_gate, bundle_with, call, refused):
    bundle = bundle_with(classes=classes({"groups": ["payments"]}))
    with_entities(bundle, {"id": "dora", "tenant": "zeta", "groups": ["payments"]})
    gate = await make_gate(bundle=bundle)
    approval = (await gate.person("ana").evaluate(call(*PAY))).approval
    assert (await refused(gate.person("dora").approve(approval))).reason == "NOT_ELIGIBLE"


@pytest.mark.parametrize("name", ["robot", "Ana"])
async def test_neither_an_identity_that_speaks_for_others_nor_the_requester_in_other_letters_approves(
    gate, ana, call, refused, name
):
    approval = (await ana.evaluate(call(*PAY))).approval
    refusal = await refused(gate.person(name).approve(approval))
    assert (refusal.reason, refusal.metadata["factor"]) == ("NOT_ELIGIBLE", "user")
    assert (await ana.get(approval.id)).state == PENDING


async def test_one_person_under_two_spellings_is_one_person(gate, ana, call, refused):
    approval = (await ana.evaluate(call(*WIPE))).approval
    assert (await gate.person("dora").approve(approval)).votes == 1
    refusal = await refused(gate.person("Dora").approve(approval))
    assert (refusal.reason, refusal.metadata["factor"]) == ("NOT_ELIGIBLE", "distinct")
    seen = await ana.get(approval.id)
    assert (seen.state, seen.votes, seen.votes_needed) == (PENDING, 1, 2)
    assert (await gate.person("carla").approve(approval)).state == APPROVED


async def permitted(gate: Any, call: Any, *voters: str, asked: tuple[str, str] = PAY) -> tuple[str, str]:
    """Return an approval's id once these approved, and the permit it brought."""
    ana = gate.person("ana")
    approval = (await ana.evaluate(call(*asked))).approval
    for voter in voters:
        approval = await gate.person(voter).approve(approval)
    assert approval.state == APPROVED
    return approval.id, (await ana.evaluate(call(*asked), approval=approval.id)).permit


async def test_an_approver_who_left_the_group_stops_the_effect_at_redeem(make_gate, bundle_with, call, refused):
    wanted = classes({"groups": ["payments"]})
    gate = await make_gate(bundle=with_entities(bundle_with(classes=wanted), {"id": "carla", "groups": ["payments"]}))
    _, permit = await permitted(gate, call, "carla")
    await go_live(gate, with_entities(bundle_with(classes=wanted, revision=2), {"id": "carla", "groups": ["ops"]}))
    refusal = await refused(gate.person("ana").redeem(permit, call(*PAY)))
    assert (refusal.code, refusal.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "APPROVER_NOT_ELIGIBLE")
    assert refusal.metadata["factor"] == "approver"
    assert [record["failed"] for record in gate.records("redeem_refused")] == [["approver"]]
    assert gate.count("redemptions") == 0


async def test_a_class_that_asks_for_a_group_now_stops_what_was_approved_without_it(
    make_gate, bundle_with, call, refused
):
    gate = await make_gate()
    ana = gate.person("ana")
    approval = (await ana.evaluate(call(*PAY))).approval
    await gate.person("dora").approve(approval)
    await go_live(gate, bundle_with(classes=classes({"groups": ["payments"]}), revision=2))
    refusal = await refused(ana.evaluate(call(*PAY), approval=approval.id))
    assert (refusal.reason, refusal.metadata["factor"]) == ("APPROVER_NOT_ELIGIBLE", "approver")
    assert [record["failed"] for record in gate.records("evaluate_refused")] == [["approver"]]
    assert gate.count("approvals") == 1


async def test_what_the_token_said_at_the_vote_still_counts_when_the_class_asks_for_it_later(
    make_gate, bundle_with, call
):
    gate = await make_gate()
    _, permit = await permitted(gate, call, "gina")
    await go_live(gate, bundle_with(classes=classes({"groups": ["payments"], "levels": ["admin"]}), revision=2))
    assert (await gate.person("ana").redeem(permit, call(*PAY))).receipt


async def test_the_bundle_takes_the_right_to_approve_away_whatever_the_token_says(
    make_gate, bundle_with, call, refused
):
    gate = await make_gate()
    _, permit = await permitted(gate, call, "gina", "dora", asked=WIPE)
    await go_live(gate, with_entities(bundle_with(revision=2), {"id": "gina", "approver": False}))
    assert (await refused(gate.person("ana").redeem(permit, call(*WIPE)))).reason == "APPROVER_NOT_ELIGIBLE"
    later = (await gate.person("ana").evaluate(call(*PAY, "c2"))).approval
    assert (await refused(gate.person("gina").approve(later))).metadata["factor"] == "approver"


async def test_a_policy_that_asks_nobody_any_more_runs_the_call_whoever_approved_it(make_gate, bundle_with, call):
    relaxed = (
        '@id("pay.free")\n@title("x")\n@title_es("x")\npermit (principal, action in Action::"risk:high", resource);'
    )
    gate = await make_gate()
    _, permit = await permitted(gate, call, "gina")
    await go_live(gate, with_entities(bundle_with(policies=relaxed, revision=2), {"id": "gina", "approver": False}))
    assert (await gate.person("ana").redeem(permit, call(*PAY))).receipt


async def test_a_class_that_wants_more_people_now_stops_what_fewer_approved(make_gate, bundle_with, call, refused):
    gate = await make_gate()
    _, permit = await permitted(gate, call, "gina", "dora", asked=WIPE)
    await go_live(gate, bundle_with(classes=classes(needed=3), revision=2))
    assert (await refused(gate.person("ana").redeem(permit, call(*WIPE)))).reason == "POLICY_CHANGED"


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([SELF | {"eligible": {"groups": ["ops"]}}], "only the requester"),
        (classes({"levels": ["boss"]}), "boss is not in levels"),
        (
            [*classes({"groups": ["ops"]})[:2], {"name": "dual", "approvers": 2, "who": "not_requester"}],
            "classes ascend",
        ),
        (classes({"groups": ["no spaces"]}), "groups"),
        (classes({"people": ["ana"]}), "people"),
        ([SELF | {"max_asked_per_hour": 0}], "max_asked_per_hour"),
    ],
)
def test_a_bundle_whose_approvers_make_no_sense_is_refused_by_name(bundle_with, given, problem):
    with pytest.raises(BundleError, match=problem) as caught:
        load_bundle(bundle_with(classes=given))
    assert caught.value.file == "riskgate.yaml"
    assert caught.value.line > 1
