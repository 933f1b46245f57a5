"""Policy facts about findings in a call's arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError, default_bundle_folder
from phylactery_riskgate.domain.facts import inspected
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool

CARD = "4111 1111 1111 1111"
KEY = "ghp_" + "A1b2C3d4E5f6" * 3
TEXT = {"type": "string"}
SEND = tool(
    "send",
    {
        "text": TEXT,
        "note": TEXT,
        "number": {"type": "integer"},
        "fields": {"type": "object"},
        "list": {"type": "array"},
    },
    effect="write",
)
FORBID = 'forbid (principal, action == Action::"send", resource) when {{ {} }};'
PEER = """forbid (principal, action in Action::"effect:write", resource)
when { context.inspection.secrets > 0 }
unless { context.approved.contains(Class::"peer") };"""


def engine_with(folder: Path, *statements: str, tools: list[dict[str, Any]] | None = None) -> DecisionEngine:
    text = ALLOW_ALL + "".join(policy(f"p{number}", statement) for number, statement in enumerate(statements))
    return DecisionEngine(bundle_of(folder, tools or [SEND], text))


def forbids(folder: Path, when: str, arguments: dict[str, Any]) -> bool:
    engine = engine_with(folder, FORBID.format(when))
    verdict = decide(engine, "send", arguments)
    assert verdict.decision in {Decision.ALLOW, Decision.BLOCKED}
    assert verdict.reasons[0].code in {"POLICY_PERMIT", "POLICY_FORBID"}
    return verdict.decision is Decision.BLOCKED


@pytest.mark.parametrize(
    ("when", "arguments", "fires"),
    [
        ("context.inspection.secrets > 0", {"text": f"use {KEY}"}, True),
        ("context.inspection.secrets > 0", {"text": CARD}, False),
        ("context.inspection.secrets > 1", {"text": KEY, "note": "password=hunter22"}, True),
        ("context.inspection.personal > 0", {"text": CARD}, True),
        ("context.inspection.personal > 1", {"text": f"{CARD} and 12345678Z"}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"text": CARD}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"text": "12345678Z"}, False),
        ('context.inspection.kinds.contains(Finding::"card")', {"number": 4111111111111111}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"fields": {"a": {"b": [1, {"c": CARD}]}}}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"fields": {CARD: True}}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"list": ["x", ["4111111111111111"]]}, True),
        ('context.inspection.kinds.contains(Finding::"card")', {"list": ["4111 1111", "1111 1111"]}, False),
        ('context.inspection.kinds.contains(Finding::"password")', {"fields": {"password": "hunter22"}}, True),
        ('context.inspection.kinds.contains(Finding::"password")', {"fields": {"colour": "hunter22"}}, False),
        ('context.inspection.by.text.kinds.contains(Finding::"card")', {"text": CARD}, True),
        ('context.inspection.by.text.kinds.contains(Finding::"card")', {"note": CARD}, False),
        ("context.inspection.by.note.personal == 0", {"text": CARD}, True),
        ("context.inspection.by.note.secrets > 0 || context.inspection.by.text.personal > 0", {"note": KEY}, True),
        ("context.inspection.kinds.isEmpty()", {"text": "hola", "number": 7, "fields": {}}, True),
        ("context.inspection.kinds.isEmpty()", {}, True),
    ],
)
def test_a_policy_sees_kinds_and_numbers_of_all_arguments_and_of_each(
    tmp_path: Path, when: str, arguments: dict[str, Any], fires: bool
):
    assert forbids(tmp_path, when, arguments) is fires


def test_a_secret_can_ask_for_somebody_else_where_nothing_else_does(tmp_path: Path):
    engine = engine_with(tmp_path, PEER)
    assert decide(engine, "send", {"text": "hola"}).decision is Decision.ALLOW
    asked = decide(engine, "send", {"text": KEY})
    assert (asked.decision, asked.approval_class) == (Decision.AUTH_REQUIRED, "peer")
    assert decide(engine, "send", {"text": KEY}, approved=frozenset({"peer"})).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "when",
    [
        'context.inspection.kinds.contains(Finding::"crad")',
        'context.inspection.kinds.contains("card")',
        "context.inspection.secret > 0",
        "context.inspection.by.nowhere.secrets > 0",
        "context.inspection has secret",
    ],
)
def test_a_kind_or_name_that_does_not_exist_is_an_error_when_the_bundle_is_loaded(tmp_path: Path, when: str):
    with pytest.raises(BundleError):
        engine_with(tmp_path, FORBID.format(when))


def test_an_argument_may_be_called_as_a_part_of_the_fact_is(tmp_path: Path):
    names = {"kinds": TEXT, "by": TEXT, "secrets": TEXT, "a b": TEXT}
    engine = engine_with(
        tmp_path,
        FORBID.format('context.inspection.by["a b"].personal > 0'),
        FORBID.format("context.inspection.by.by.secrets > 0"),
        tools=[tool("send", names)],
    )
    assert decide(engine, "send", {"a b": CARD}).policy_ids == ("p0",)
    assert decide(engine, "send", {"by": KEY}).policy_ids == ("p1",)
    assert decide(engine, "send", {"kinds": CARD}).decision is Decision.ALLOW


def test_nothing_is_inspected_where_no_policy_looks_and_once_where_several_do(tmp_path: Path, monkeypatch: Any):
    looked_at: list[str] = []
    original = inspected.inspect
    monkeypatch.setattr(inspected, "inspect", lambda text: looked_at.append(text) or original(text))
    decide(engine_with(tmp_path / "none"), "send", {"text": CARD})
    assert looked_at == []
    one = engine_with(tmp_path / "one", FORBID.format("context.inspection.by.note.secrets > 9"))
    decide(one, "send", {"text": CARD, "note": "n"})
    assert looked_at == ["n"]
    looked_at.clear()
    decide(engine_with(tmp_path / "all", PEER, PEER.replace("secrets", "personal")), "send", {"text": KEY, "note": "n"})
    assert looked_at == [KEY, "n"]


def test_the_record_of_the_decision_holds_no_value(tmp_path: Path):
    verdict = decide(engine_with(tmp_path, PEER), "send", {"text": f"{KEY} {CARD}"})
    assert verdict.facts["context"]["inspection"] == {"secrets": "long"}
    assert KEY not in str(verdict.facts)
    assert KEY not in str(verdict.reasons)


def test_the_policy_the_default_bundle_offers_as_a_comment_works_once_it_is_taken_over(tmp_path: Path):
    lines = (default_bundle_folder() / "policies" / "default.cedar").read_text().splitlines()
    offered = "\n".join(line.removeprefix("//") for line in lines if line.startswith("//   "))
    assert '@id("secret.ask-peer")' in offered
    engine = DecisionEngine(bundle_of(tmp_path, [SEND], ALLOW_ALL + offered))
    for text, decision in ((KEY, Decision.AUTH_REQUIRED), (CARD, Decision.AUTH_REQUIRED), ("hola", Decision.ALLOW)):
        assert decide(engine, "send", {"text": text}).decision is decision
