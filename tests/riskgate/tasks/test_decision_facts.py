"""A task's facts as policies see them: types, ranges, single arguments, and none without a task."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.bundle.bundle import Bundle, BundleError
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.bundle.cases import CaseFacts
from phylactery_riskgate.domain.intent.model import UNSHOWN, TaskFacts
from phylactery_riskgate.domain.model import Caller, CallSite, Decision, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import LOST, known
from phylactery_riskgate.domain.policy.policies import parse_policies
from phylactery_riskgate.domain.policy.slices import without_task_policies

from tests.support.cases import each_case
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool
from tests.support.riskgate.policies import lint

TEXT = {"type": "string"}
PAY = tool(
    "pay",
    {"to": {"type": "object", "properties": {"name": TEXT, "iban": TEXT}}, "date": TEXT, "note": TEXT},
    required=("to",),
    effect="write",
    controls=["/to/iban", "/to/name", "/date"],
)
NOTHING_DECLARED = tool("log", {"text": TEXT}, effect="write")
ARGUMENTS = {"to": {"iban": "i", "name": "n"}, "note": "x"}


def engine_with(folder: Path, when: str, *, unless: str = "") -> DecisionEngine:
    more = f" unless {{ {unless} }}" if unless else ""
    text = ALLOW_ALL + policy("no", f'forbid (principal, action == Action::"pay", resource) when {{ {when} }}{more};')
    return DecisionEngine(bundle_of(folder, [PAY, NOTHING_DECLARED], text))


def blocks(engine: DecisionEngine, facts: CaseFacts | None, arguments: dict | None = None) -> bool:
    task = None if facts is None else facts.read
    verdict = decide(engine, "pay", arguments or ARGUMENTS, task=task)
    assert verdict.reasons[0].code in {"POLICY_FORBID", "POLICY_PERMIT"}
    return verdict.decision is Decision.BLOCKED


@pytest.mark.parametrize(
    ("when", "fires", "silent"),
    [
        ("context.task.shown", CaseFacts(), None),
        ("context.task.shown == false", None, CaseFacts()),
        ("context.intent >= 1", CaseFacts(intent=1), CaseFacts(intent=0)),
        ("context.refused", CaseFacts(refused=True), CaseFacts()),
        ("context.origin.foreign", CaseFacts(origin=2, foreign=True), CaseFacts(origin=3, foreign=False)),
        ('context.understood_by == "rules"', CaseFacts(intent=2), CaseFacts(intent=1)),
        ("context.origin.worst == 2", CaseFacts(origin=2), CaseFacts(origin=1)),
        ("context.signals > 0", CaseFacts(signals=1), CaseFacts()),
        ("context.origin.by.to >= 2", CaseFacts(origin=2), CaseFacts(origin=2, by={"to": 1})),
    ],
)
def test_every_fact_is_there_to_be_asked_for(
    tmp_path: Path, when: str, fires: CaseFacts | None, silent: CaseFacts | None
) -> None:
    engine = engine_with(tmp_path, when)
    assert (blocks(engine, fires), blocks(engine, silent)) == (True, False)


@pytest.mark.parametrize("when", ["context.intent == 0", "context.origin.worst == 3", "context.origin.by.to == 3"])
def test_without_a_task_nobody_asked_and_everything_is_from_nowhere(tmp_path: Path, when: str) -> None:
    engine = engine_with(tmp_path, when)
    assert blocks(engine, None)
    assert not blocks(engine, CaseFacts(intent=1, origin=1))


def test_an_optional_control_argument_has_an_origin_where_it_is_there(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, "context.origin.by has date && context.origin.by.date == 2")
    assert not blocks(engine, CaseFacts(origin=2))
    assert blocks(engine, CaseFacts(origin=2), ARGUMENTS | {"date": "d"})
    with pytest.raises(BundleError, match="no"):
        engine_with(tmp_path / "unasked", "context.origin.by.date == 2")


def test_an_argument_without_evidence_is_from_nowhere(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, "context.origin.by.to == 3")
    silent = replace(LOST, worst=0, signals=0)
    assert decide(engine, "pay", ARGUMENTS, task=known(silent)).decision is Decision.BLOCKED


@pytest.mark.parametrize(
    ("when", "fault"),
    [
        ("context.intent == 3", "between 0 and 2"),
        ("context.origin.worst == 4", "between 0 and 3"),
        ("context.signals > 9", "between 0 and 2"),
        ("context.origin.by has note", "which no tool it covers has"),
        ("context.origin.by.to == 7", "between 0 and 3"),
        ("context.origin has best", "which no tool it covers has"),
        ("context.refused == 1", "no"),
        ("context.delegated", "no"),
        ("context.task.id == 1", "no"),
    ],
)
def test_what_a_fact_can_never_be_is_a_fault_of_the_bundle(tmp_path: Path, when: str, fault: str) -> None:
    with pytest.raises(BundleError, match=fault):
        engine_with(tmp_path, when)


def test_facts_that_are_lost_count_as_the_worst_there_is(tmp_path: Path) -> None:
    when = "context.task.shown && context.intent == 0 && context.origin.worst == 3 && context.signals == 2"
    engine = engine_with(tmp_path, when)
    assert decide(engine, "pay", ARGUMENTS, task=known(LOST)).decision is Decision.BLOCKED
    assert decide(engine, "pay", ARGUMENTS, task=known(UNSHOWN)).decision is Decision.ALLOW


def test_the_verdict_keeps_the_facts_and_deciding_again_uses_them(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, "context.origin.worst > 1")
    asked: list[TaskFacts] = []

    def read(tool, bound) -> TaskFacts:
        asked.append(CaseFacts(intent=2, origin=2).read(tool, bound))
        return asked[-1]

    verdict = decide(engine, "pay", ARGUMENTS, task=read)
    assert (verdict.decision, verdict.task) == (Decision.BLOCKED, asked[0])
    again = engine.decide_again(
        verdict, Caller("ana", "acme"), CallSite("t", "r"), approved=frozenset(), usage=lambda *_: {}
    )
    assert (again.task, again.policy_ids, len(asked)) == (verdict.task, ("no",), 1)
    assert TaskFacts.from_json(verdict.task.to_json()) == verdict.task


def test_the_record_holds_the_facts_shape_and_no_value_of_them(tmp_path: Path) -> None:
    engine = engine_with(tmp_path, "context.origin.by.to == 3 || context.intent == 1")
    verdict = decide(engine, "pay", ARGUMENTS, task=CaseFacts(intent=2, origin=0).read)
    assert verdict.facts["context"] == {"intent": "long", "origin": {"by": {"to": "long"}}}


# ---- cases of a bundle ----------------------------------------------------------------------------------------------


def case(name: str, facts: dict | None, decision: str) -> dict:
    told = {} if facts is None else {"facts": facts}
    return {"name": name, "tool": "pay", "arguments": ARGUMENTS, "expect": {"decision": decision}, **told}


def test_a_case_says_what_its_task_told(tmp_path: Path) -> None:
    text = ALLOW_ALL + policy(
        "no", "forbid (principal, action, resource) when { context.task.shown && context.origin.worst > 0 };"
    )
    cases = [
        case("no task", None, "ALLOW"),
        case("a task", {}, "BLOCKED"),
        case("asked", {"intent": 2, "origin": 0}, "ALLOW"),
    ]
    results = run_bundle_tests(bundle_of(tmp_path, [PAY], text, cases={"cases": cases}))
    assert [one.differences for one in results] == [(), (), ()]


@pytest.mark.parametrize(
    "facts",
    [
        {"intent": 3},
        {"origin": -1},
        {"signals": 3},
        {"by": {"to": 4}},
        {"refused": 1},
        {"delegated": True},
        {"claimed": 1},
        {"intent": "2"},
    ],
)
def test_a_case_tells_nothing_a_task_could_not(tmp_path: Path, facts: dict) -> None:
    with pytest.raises(BundleError, match="cases/0/facts"):
        bundle_of(tmp_path, [PAY], ALLOW_ALL, cases={"cases": [case("wrong", facts, "ALLOW")]})


# ---- policies that say nothing without a task -----------------------------------------------------------------------

ATOMS = (
    "!context.task.shown",
    "context.intent == 0",
    "context.origin.worst >= 2",
    "context.signals == 0",
    'context.args.note == "x"',
    "context.refused",
)


@st.composite
def conditions(draw: st.DrawFn, depth: int = 1) -> str:
    atom = st.sampled_from([*["context.task.shown"] * 4, *ATOMS])
    if not depth:
        return draw(atom)
    form = draw(
        st.sampled_from(["{0}", "{0} && {1}", "{0} || {1}", "context.task.shown && ({0})", "{0} && {1} && {2}"])
    )
    return form.format(*(f"({draw(conditions(depth - 1))})" for _ in range(3)))


CLAUSES = st.lists(st.tuples(st.sampled_from(["when", "unless"]), conditions()), max_size=2)
POLICIES = st.lists(st.tuples(st.sampled_from(["permit", "forbid"]), CLAUSES), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def paying(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    required = tool("pay", {"to": TEXT, "note": TEXT}, required=("to", "note"), effect="write", controls=["/to"])
    return bundle_of(tmp_path_factory.mktemp("paying"), [required], ALLOW_ALL)


@pytest.mark.slow
@given(POLICIES)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_leaving_out_what_says_nothing_without_a_task_changes_no_decision(
    paying: Bundle, written: list[tuple[str, list[tuple[str, str]]]]
) -> None:
    text = "".join(
        policy(
            f"p{number}",
            f"{effect} (principal, action, resource) {' '.join(f'{word} {{ {when} }}' for word, when in clauses)};",
        )
        for number, (effect, clauses) in enumerate(written)
    )
    policies = parse_policies("x.cedar", text)
    assert lint(policies, paying.tools, paying.classes) == ()
    engine = DecisionEngine(replace(paying, policies=policies))
    whole = DecisionEngine(replace(paying, policies=policies))
    whole._prepared = {name: replace(one, without_task=None) for name, one in whole._prepared.items()}
    call = RawCall("pay", "c", arguments_json='{"to":"a","note":"x"}')
    answers = [one.decide(call, Caller("ana", "acme"), CallSite("t", "r")) for one in (engine, whole)]
    assert (answers[0].decision, answers[0].policy_ids) == (answers[1].decision, answers[1].policy_ids)


@each_case(
    ("clauses", "says_nothing"),
    [
        ("when { context.task.shown }", True),
        ("when { context.task.shown && context.intent == 0 && true }", True),
        ("when { context.task.shown && (context.intent == 0 || true) } unless { context.signals == 0 }", True),
        ("when { context.task.shown || context.intent == 0 }", False),
        ("when { context.intent == 0 && context.task.shown }", False),
        ("when { !context.task.shown }", False),
        ("when { context.task.shown == false }", False),
        ("unless { context.task.shown }", False),
        ("when { context.intent == 0 } when { context.task.shown }", False),
        ("", False),
    ],
)
def test_a_policy_is_left_out_only_where_it_asks_for_the_task_before_anything_else(
    clauses: str, says_nothing: bool
) -> None:
    policies = parse_policies("x", policy("p", f"forbid (principal, action, resource) {clauses};"))
    assert without_task_policies(policies) == (() if says_nothing else policies)


def test_a_policy_that_first_asks_for_the_task_costs_a_call_without_one_nothing(tmp_path: Path) -> None:
    inside = DecisionEngine(
        bundle_of(
            tmp_path,
            [PAY],
            ALLOW_ALL
            + policy("no", "forbid (principal, action, resource) when { context.task.shown && context.signals == 2 };"),
        )
    )
    assert decide(inside, "pay", ARGUMENTS).facts["context"] == {}
    told = decide(inside, "pay", ARGUMENTS, task=CaseFacts(signals=2).read)
    assert (told.decision, told.facts["context"]) == (
        Decision.BLOCKED,
        {"task": {"shown": "boolean"}, "signals": "long"},
    )
