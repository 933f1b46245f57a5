"""Single-user mode: peer approvals go to the requester, and no other decision differs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery.riskgate.v1 import types_pb2
from phylactery_riskgate.domain.bundle.bundle import (
    BundleError,
    load_bundle,
    single_user_bundle_folder,
)
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.model import Caller, CallSite, Decision, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import SETTINGS, policy, tool, write_bundle

ALONE = {**SETTINGS, "single_user": True}
PAY = ("pay", '{"to":"x","note":"n"}')
CRITICAL = [tool("wipe", risk="critical", effect="irreversible")]


def guarded(approval_class: str) -> str:
    asked = f'when {{ context.approved.contains(Class::"{approval_class}") }}'
    return policy("wipe", f"permit (principal, action, resource) {asked};")


@pytest.mark.slow
def test_the_packaged_variant_shares_tools_policies_and_cases_and_passes_all_of_them():
    alone, team = load_bundle(single_user_bundle_folder()), default_bundle()
    assert {path.name for path in single_user_bundle_folder().iterdir()} == {"base", "riskgate.yaml"}
    own = {name for name, text in alone.files.texts.items() if text != team.files.texts.get(name)}
    assert (own, alone.files.texts.keys()) == ({"riskgate.yaml"}, team.files.texts.keys())
    assert [one for one in run_bundle_tests(alone) if not one.passed] == []
    assert alone.hash != team.hash
    assert (alone.single_user, team.single_user) == (True, False)


def test_its_settings_are_the_default_ones_but_for_who_is_asked():
    alone, team = load_bundle(single_user_bundle_folder()), default_bundle()
    names = ("classes", "levels", "approval_ttl_seconds", "max_pending_per_thread", "max_pending_per_user")
    names += ("max_asked_per_user_per_hour", "rejected_stays_seconds")
    assert [getattr(alone, name) for name in names] == [getattr(team, name) for name in names]
    # a data folder that served the default bundle takes this one over
    assert alone.revision == team.revision + 1, "raise the revision in single_user_bundle/riskgate.yaml too"


def test_two_people_stay_two_people_and_the_question_says_that_nobody_can_answer(tmp_path: Path):
    engine = DecisionEngine(load_bundle(write_bundle(tmp_path, CRITICAL, guarded("dual"), settings=ALONE)))
    for approved in (frozenset(), frozenset({"self", "peer"})):
        verdict = engine.decide(
            RawCall("wipe", "c1", arguments_struct={}),
            Caller("ana", "acme", "user", frozenset(), direct=True),
            CallSite("t1", "r1"),
            approved=approved,
        )
        assert (verdict.decision, verdict.approval_class) == (Decision.AUTH_REQUIRED, "dual")
        assert [one.code for one in verdict.reasons] == ["APPROVAL_REQUIRED", "APPROVAL_UNANSWERABLE"]


def test_a_peer_guards_no_critical_tool_where_there_is_none(tmp_path: Path):
    write_bundle(tmp_path / "team", CRITICAL, guarded("peer"))
    load_bundle(tmp_path / "team")
    write_bundle(tmp_path / "alone", CRITICAL, guarded("peer"), settings=ALONE)
    with pytest.raises(BundleError, match="without an approval by another person"):
        load_bundle(tmp_path / "alone")


@pytest.mark.parametrize("base", ["../team", "", "Default"])
def test_a_bundle_builds_on_nothing_but_the_packaged_one(tmp_path: Path, base: str):
    (tmp_path / "base").write_text(base)
    with pytest.raises(BundleError, match="only 'default'"):
        load_bundle(tmp_path)


def test_somebody_has_to_be_asked(tmp_path: Path):
    settings = {"revision": 1, "single_user": True, "classes": SETTINGS["classes"][1:]}
    write_bundle(tmp_path, CRITICAL, guarded("dual"), settings=settings)
    with pytest.raises(BundleError, match="who: requester"):
        load_bundle(tmp_path)


async def test_the_requester_answers_what_a_peer_would_and_it_runs_once(make_gate, bundle_with, call, refused: Any):
    gate = await make_gate(bundle=bundle_with(single_user=True))
    ana = gate.person("ana")
    asked = await ana.evaluate(call(*PAY))
    assert (asked.decision, asked.approval.approval_class) == (types_pb2.DECISION_AUTH_REQUIRED, "self")
    assert asked.approval.code
    assert (await refused(gate.person("gina").approve(asked.approval))).reason
    approved = await ana.approve(asked.approval, code=asked.approval.code)
    assert approved.state == types_pb2.APPROVAL_STATE_APPROVED
    allowed = await ana.evaluate(call(*PAY), approval=asked.approval.id)
    assert allowed.decision == types_pb2.DECISION_ALLOW
    assert (await ana.redeem(allowed.permit, call(*PAY))).receipt


async def test_the_same_call_in_a_team_asks_a_peer(make_gate, bundle_with, call):
    gate = await make_gate(bundle=bundle_with())
    assert (await gate.person("ana").evaluate(call(*PAY))).approval.approval_class == "peer"
