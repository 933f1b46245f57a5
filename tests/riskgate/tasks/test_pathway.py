"""Pathway: how the message behind a call is served, as stated by the caller."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery.riskgate.v1 import riskgate_pb2, types_pb2
from phylactery_riskgate.domain.bundle.bundle import BundleError
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.model import CallSite, Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool, write_bundle

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


# ---- over the wire --------------------------------------------------------------------------------------------------

ONLY_TOOLS = policy(
    "asked.allow",
    'permit (principal, action, resource) when { context.pathway == Pathway::"tool_intent" };',
)


@pytest.fixture
async def ana(make_gate, tmp_path):
    folder = write_bundle(tmp_path / "only-tools", [WRITE], ONLY_TOOLS)
    return (await make_gate(bundle=folder)).person("ana")


def asking(pathway: int) -> riskgate_pb2.EvaluateRequest:
    call = types_pb2.ToolCall(tool="write", tool_call_id="c1", arguments_json="{}")
    request = riskgate_pb2.EvaluateRequest(call=call, thread_id="t1", run_id=f"r{pathway}")
    request.pathway = pathway
    return request


async def test_redeem_decides_with_the_pathway_evaluate_was_told(ana):
    request = asking(types_pb2.PATHWAY_TOOL_INTENT)
    answer = await ana.decisions.Evaluate(request, metadata=ana.metadata)
    assert (await ana.redeem(answer.permit, request.call, run=request.run_id)).receipt
    for other in (types_pb2.PATHWAY_UNSPECIFIED, types_pb2.PATHWAY_RICH_INPUT):
        blocked = await ana.decisions.Evaluate(asking(other), metadata=ana.metadata)
        assert blocked.decision == types_pb2.DECISION_BLOCKED


async def test_a_pathway_that_is_none_is_no_request(ana, refused):
    refusal = await refused(ana.decisions.Evaluate(asking(9), metadata=ana.metadata))
    assert (refusal.reason, refusal.fields) == ("INVALID_REQUEST", ["pathway"])
