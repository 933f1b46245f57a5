"""What spends, deletes, guards or is published asks by default, whatever its risk; a literal message does not."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import (
    Bundle,
    default_bundle_folder,
    load_bundle,
    single_user_bundle_folder,
    with_tools,
)
from phylactery_riskgate.domain.intent.model import CLEAR, RULES, Evidence, Heard, TaskFacts
from phylactery_riskgate.domain.model import Decision, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import known

from tests.support.cases import each_case
from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, tool

BUNDLES = {"default": default_bundle_folder(), "single": single_user_bundle_folder()}
ASKS: dict[str, dict[str, Any]] = {
    "pay": {"reach": "people", "spends": True},
    "order": {"reach": "shared", "spends": True, "effect": "write"},
    "delete": {"reach": "own", "destroys": True},
    "drop": {"reach": "shared", "destroys": True, "effect": "write"},
    "unlock": {"reach": "own", "guards": True, "effect": "write", "undo": "ours", "reviewed": True},
    "grant": {"reach": "shared", "guards": True, "effect": "write"},
    "post": {"reach": "public", "effect": "write"},
    "price": {"reach": "public"},
}
RUNS: dict[str, dict[str, Any]] = {
    "message": {"reach": "people"},
    "mail": {"reach": "people", "effect": "write"},
    "note": {"reach": "own", "effect": "write", "undo": "ours", "reviewed": True},
    "ticket": {"reach": "shared", "effect": "write"},
    "untold": {"effect": "write"},
}


def facts(intent: int = CLEAR, origin: int = 0, *, own: bool = True, foreign: bool = False) -> TaskFacts:
    return TaskFacts(
        shown=True,
        intent=intent,
        intent_words=("pay", "bob"),
        arguments=(Evidence("/target", origin, "the user's words"),),
        worst=origin,
        signals=0,
        signal_reasons=(),
        understood_by=RULES,
        ask="ta_1/1" if intent == CLEAR else "",
        heard=Heard(by_user=intent > 0),
        own=own,
        foreign=foreign,
        read=False,
    )


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], DecisionEngine]:
    made = {}
    for (name, folder), risk in product(BUNDLES.items(), ("low", "medium", "high")):
        entries = [
            tool(one, {"target": {"type": "string"}}, **{"risk": risk, "effect": "irreversible", **entry})
            for one, entry in {**ASKS, **RUNS}.items()
        ]
        tools = bundle_of(tmp_path_factory.mktemp(f"{name}{risk}"), entries, ALLOW_ALL).tools
        packaged: Bundle = load_bundle(folder)
        made[name, risk] = DecisionEngine(with_tools(packaged, {**packaged.tools, **tools}))
    return made


def verdict(engine: DecisionEngine, name: str, told: TaskFacts, *approved: str) -> Verdict:
    return decide(engine, name, {"target": "bob"}, task=known(told), approved=frozenset(approved))


@pytest.mark.parametrize("name", ASKS)
@pytest.mark.parametrize("risk", ["low", "medium", "high"])
@pytest.mark.parametrize("bundle", BUNDLES)
def test_it_asks_the_requester_however_clearly_it_was_asked_for(
    engines: dict[tuple[str, str], DecisionEngine], bundle: str, risk: str, name: str
) -> None:
    engine = engines[bundle, risk]
    asked = verdict(engine, name, facts())
    assert (asked.decision, asked.approval_class, asked.stakes) == (Decision.AUTH_REQUIRED, "self", "high")
    assert verdict(engine, name, facts(), "self").decision is Decision.ALLOW


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("risk", ["low", "medium", "high"])
@pytest.mark.parametrize("bundle", BUNDLES)
def test_what_spends_and_destroys_nothing_runs_as_it_did(
    engines: dict[tuple[str, str], DecisionEngine], bundle: str, risk: str, name: str
) -> None:
    assert verdict(engines[bundle, risk], name, facts()).decision is Decision.ALLOW


@pytest.mark.parametrize("name", [*ASKS, *RUNS])
@pytest.mark.parametrize("bundle", BUNDLES)
def test_somebody_else_is_asked_only_about_what_was_not_asked_for_with_a_target_of_others(
    engines: dict[tuple[str, str], DecisionEngine], bundle: str, name: str
) -> None:
    engine = engines[bundle, "high"]
    other = "self" if bundle == "single" else "peer"
    for intent, origin, expected in ((1, 0, "self"), (1, 1, "self"), (0, 0, "self"), (0, 1, other), (0, 2, other)):
        told = facts(intent, origin, own=origin == 0)
        assert verdict(engine, name, told).approval_class == expected, (intent, origin)
    assert verdict(engine, name, facts(0, 3, own=False, foreign=True)).decision is Decision.BLOCKED
    # without a value of the person's own, nothing says that they wrote the targets
    assert verdict(engine, name, facts(0, 0, own=False)).approval_class == other


@each_case("name", list(default_bundle().tools))
def test_no_tool_of_the_agent_spends_deletes_or_publishes(name: str) -> None:
    entry = default_bundle().tools[name]
    assert (entry.spends, entry.destroys, entry.guards, entry.reach == "public") == (False,) * 4


def test_a_file_that_other_programs_obey_asks_and_another_does_not(
    engines: dict[tuple[str, str], DecisionEngine], tmp_path: Path
) -> None:
    engine = engines["default", "high"]
    for path, decision in (("Makefile", Decision.AUTH_REQUIRED), ("notes.txt", Decision.ALLOW)):
        call = {"path": path, "content": "x"}
        assert decide(engine, "write_file", call, task=known(facts())).decision is decision
