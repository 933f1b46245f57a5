"""Pathway: how the message is served that a call answers, in the word of whoever calls."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_riskgate.domain.bundle import BundleError
from phylactery_riskgate.domain.engine import DecisionEngine, run_bundle_tests
from phylactery_riskgate.domain.model import CallSite, Decision

from tests.support.bundles import ALLOW_ALL, bundle_of, decide, policy, tool

GUESSED = ALLOW_ALL + policy(
    "guessed.ask-self",
    """forbid (principal, action in Action::"effect:write", resource)
    when { context.pathway == Pathway::"rich_input" }
    unless { context.approved.contains(Class::"self") };""",
)
WRITE = tool("write", effect="write")


def test_what_was_read_from_a_picture_asks_before_it_writes(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [WRITE], GUESSED))
    for pathway, decision in (("rich_input", Decision.AUTH_REQUIRED), ("tool_intent", Decision.ALLOW)):
        verdict = decide(engine, "write", {}, site=CallSite("t1", "r1", pathway=pathway))
        assert (verdict.decision, verdict.facts["pathway"]) == (decision, pathway)
        assert verdict.facts["context"]["pathway"] == "Pathway"
    assert decide(engine, "write", {}).decision is Decision.ALLOW


def test_a_pathway_nobody_knows_is_no_policy_and_no_case(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match=r"guessed\.ask-self"):
        bundle_of(tmp_path / "policy", [WRITE], GUESSED.replace("rich_input", "rich_inputs"))
    case = {"name": "x", "tool": "write", "pathway": "rich", "expect": {"decision": "ALLOW"}}
    with pytest.raises(BundleError, match="cases/0/pathway"):
        bundle_of(tmp_path / "case", [WRITE], GUESSED, cases={"cases": [case]})


def test_a_case_says_its_pathway(tmp_path: Path) -> None:
    wanted = {"decision": "AUTH_REQUIRED", "approval_class": "self"}
    case = {"name": "x", "tool": "write", "pathway": "rich_input", "expect": wanted}
    bundle = bundle_of(tmp_path, [WRITE], GUESSED, cases={"cases": [case]})
    assert [result.differences for result in run_bundle_tests(bundle)] == [()]
