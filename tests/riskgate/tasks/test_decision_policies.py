"""The default policies on a task's facts: every row of the table, and nothing an approval could permit unasked."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.case_runner import engine_for_cases
from phylactery_riskgate.domain.bundle.cases import CaseFacts
from phylactery_riskgate.domain.model import Caller, Decision, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import decide

WRITES = {
    "medium": ("write_file", {"path": "notes/a.txt", "content": "hello"}),
    "high": ("send_money", {"target": "bob"}),
    "critical": ("delete_tenant", {"target": "acme"}),
}
ADMIN = Caller("adm", "acme", "admin")
CLASSES = ("self", "peer", "dual")
EVERY = [
    CaseFacts(intent=intent, refused=refused, foreign=foreign, origin=origin, signals=signals)
    for intent, refused, foreign, origin, signals in itertools.product(
        range(3), (False, True), (False, True), range(4), range(3)
    )
]
SECRET, CARD = "password = kX9$mQ2vLp7Zw4Rt", "4111 1111 1111 1111"


@pytest.fixture(scope="module")
def engine() -> DecisionEngine:
    return engine_for_cases(default_bundle())


def told(engine: DecisionEngine, name: str, arguments: dict[str, Any], facts: CaseFacts, **options: Any) -> Verdict:
    return decide(engine, name, arguments, caller=ADMIN, task=facts.read, **options)


def wanted(risk: str, facts: CaseFacts) -> str:
    """The table of ADR 33, with what ADR 68 adds, written a second time: ALLOW, BLOCKED, or the class that is asked."""
    if facts.signals == 2 or facts.refused or facts.foreign:
        return "BLOCKED"
    carried = facts.signals >= 1 and facts.origin >= 2 and facts.intent < 2
    if carried and not (risk == "medium" and facts.origin == 3):
        return "BLOCKED"
    if facts.intent == 2 and facts.origin == 0 and facts.signals == 0 and risk != "critical":
        return "ALLOW"
    typed = facts.origin == 0 and facts.own is not False  # every target is the person's own words
    high = "self" if typed or (facts.intent and facts.origin <= 1) else "peer"
    return {"medium": "self", "high": high, "critical": "dual"}[risk]


@pytest.mark.parametrize("risk", WRITES)
def test_a_write_of_a_task_is_decided_by_the_table(engine: DecisionEngine, risk: str) -> None:
    for facts in EVERY:
        verdict = told(engine, *WRITES[risk], facts)
        assert (verdict.approval_class or str(verdict.decision)) == wanted(risk, facts), facts


@pytest.mark.parametrize("risk", WRITES)
def test_no_approval_opens_what_the_facts_block_and_the_class_that_is_asked_is_enough(
    engine: DecisionEngine, risk: str
) -> None:
    for facts in EVERY:
        answers = {one: told(engine, *WRITES[risk], facts, approved=frozenset({one})).decision for one in CLASSES}
        before = wanted(risk, facts)
        enough = {"ALLOW": CLASSES, "BLOCKED": ()}.get(
            before, CLASSES[CLASSES.index(before) :] if before in CLASSES else ()
        )
        assert {name for name, decision in answers.items() if decision is Decision.ALLOW} == set(enough), facts


@pytest.mark.parametrize("content", [SECRET, CARD])
def test_a_secret_or_a_card_is_asked_about_however_clearly_it_was_asked_for(
    engine: DecisionEngine, content: str
) -> None:
    asked = CaseFacts(intent=2, origin=0)
    plain = {"path": "notes/a.txt", "content": "hello"}
    assert told(engine, "write_file", plain, asked).decision is Decision.ALLOW
    verdict = told(engine, "write_file", plain | {"content": content}, asked)
    assert (verdict.decision, verdict.approval_class) == (Decision.AUTH_REQUIRED, "self")


@pytest.mark.parametrize(
    ("name", "arguments"), [*WRITES.values(), ("read_file", {"path": "a"}), ("fetch", {"url": "https://a.b/"})]
)
def test_a_call_without_a_task_is_decided_as_before_there_were_tasks(
    engine: DecisionEngine, name: str, arguments: dict[str, Any]
) -> None:
    before = {
        "write_file": (Decision.AUTH_REQUIRED, "self"),
        "send_money": (Decision.AUTH_REQUIRED, "peer"),
        "delete_tenant": (Decision.AUTH_REQUIRED, "dual"),
        "read_file": (Decision.ALLOW, None),
        "fetch": (Decision.ALLOW, None),
    }
    for options in ({}, {"task": CaseFacts(shown=False, intent=2, origin=0).read}):
        verdict = decide(engine, name, arguments, caller=ADMIN, **options)
        assert (verdict.decision, verdict.approval_class) == before[name]
        assert "task" not in verdict.facts["context"]


def test_reading_is_allowed_whatever_a_task_tells_but_for_an_unlisted_address_from_a_text(
    engine: DecisionEngine,
) -> None:
    for facts in EVERY:
        assert told(engine, "read_file", {"path": "a.txt"}, facts).decision is Decision.ALLOW
        fetched = told(engine, "fetch", {"url": "https://example.org/"}, facts)
        assert fetched.approval_class == ("self" if facts.origin == 3 else None)
        assert fetched.decision is (Decision.AUTH_REQUIRED if facts.origin == 3 else Decision.ALLOW)


def test_the_users_own_memory_keeps_what_they_asked_it_to_keep_and_asks_about_the_rest(engine: DecisionEngine) -> None:
    for facts in EVERY:
        verdict = told(engine, "remember", {"text": "I prefer tea"}, facts)
        if facts.signals == 2 or facts.refused:
            assert verdict.decision is Decision.BLOCKED, facts
        elif facts.intent == 2 and facts.signals == 0:
            assert verdict.decision is Decision.ALLOW, facts
        else:
            assert verdict.approval_class == "self", facts


def test_a_level_a_path_and_a_tenant_are_not_opened_by_what_the_user_asked_for(engine: DecisionEngine) -> None:
    asked = CaseFacts(intent=2, origin=0)
    user = decide(engine, "delete_tenant", {"target": "acme"}, task=asked.read)
    assert user.policy_ids == ("level.admin",)
    assert told(engine, "write_file", {"path": ".env", "content": "x"}, asked).policy_ids == ("path.protected",)
