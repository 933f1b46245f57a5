"""The optimised form of policy sets gives the same answers as the policies as written."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.bundle.bundle import BundleError
from phylactery_riskgate.domain.facts.facts import approved_value
from phylactery_riskgate.domain.policy.authorizer import Answer, Question, Subject
from phylactery_riskgate.domain.policy.cedar_schema import build_entity_schema
from phylactery_riskgate.domain.policy.policies import Policy, parse_policies, policy_handle
from phylactery_riskgate.domain.policy.sets import ALIKE, GROUP, MANY, PolicySets, policy_sets
from phylactery_riskgate.domain.policy.slices import ANY_THREAD, slices_for

from tests.support.cases import each_case
from tests.support.riskgate.bundles import bundle_of, policy, tool

LEVELS = ("user", "admin", "system")
GROUPS = ("effect:write", "level:user", "risk:low")
SCHEMA = build_entity_schema("t", GROUPS, LEVELS)
CLASSES = ("self", "peer", "dual")
ANA = Subject("ana", "acme", "user", ("staff",), "thread-1", "acme")
BOB = Subject("bob", "acme", "admin", (), "thread-2", "other")

PRINCIPALS = (
    "principal", 'principal == User::"ana"', 'principal in Group::"staff"', "principal is User",
    "principal is Thread", 'principal is User in Group::"staff"',
)  # fmt: skip
ACTIONS = (
    "action", 'action == Action::"t"', 'action == Action::"other"', 'action in Action::"risk:low"',
    'action in Action::"risk:high"', 'action in [Action::"risk:high", Action::"t"]', "action in []",
    'action in [Action::"other", Action::"effect:write"]', 'action == Elsewhere::Action::"t"',
    'action in Elsewhere::Action::"risk:low"',
)  # fmt: skip
RESOURCES = (
    "resource", 'resource == Thread::"thread-1"', 'resource in Tenant::"acme"', "resource is Thread",
    "resource is User", 'resource is Thread in Tenant::"acme"',
)  # fmt: skip
SOUND = (
    "true", "false", "context.flag", "context.number > 3", 'context.text like "a*"', "context has missing",
    'principal.level == Level::"admin"', 'principal in Group::"staff"', "resource in principal.tenant",
    'action in Action::"risk:low"', 'action == Action::"t"', "context.flag == false",
    "if context.flag then context.number == 1 else context.number == 5", "[1, 2].contains(context.number)",
    'context.approved.contains(Class::"self")', 'context.approved.containsAny([Class::"peer", Class::"dual"])',
    'context.approved.containsAll([Class::"self", Class::"peer"])', '{"a": context.flag}.a',
)  # fmt: skip
FAILING = (
    "context.missing", "context.missing.more == 1", "context.number", "context.text", 'context.number like "a"',
    f"context.number + {2**63 - 1} > 0", "principal.missing == 1", 'context.text.contains("a")',
    "context.number && context.flag", '"a" < 1', "if context.text then true else false", "-context.text == 1",
)  # fmt: skip
ODD = (
    'context.approved == [Class::"self"]', "context has approved", "context.approved.isEmpty()",
    'Class::"self" == Class::"self"', '[Class::"self"].contains(Class::"self")', "context == {}",
    'context.approved.contains("self")', 'Class::"self" is Class', "context.approved.contains(context.text)",
)  # fmt: skip
"""Nothing a bundle may hold, because the lint refuses it, and answered rightly all the same."""


@st.composite
def conditions(draw: st.DrawFn, atoms: Sequence[str], depth: int = 2) -> str:
    form = draw(st.sampled_from(["{0}", "({0}) && ({1})", "({0}) || ({1})", "!({0})"])) if depth else "{0}"
    return form.format(*(draw(conditions(atoms, depth - 1)) for _ in range(2)) if depth else (draw(one_of(atoms)),))


@st.composite
def one_of(draw: st.DrawFn, atoms: Sequence[str]) -> str:
    return draw(st.sampled_from(atoms))


@st.composite
def policies_of(draw: st.DrawFn, atoms: Sequence[str]) -> list[str]:
    statements = []
    for _ in range(draw(st.integers(0, 12))):
        effect = draw(st.sampled_from(["permit", "forbid"]))
        scope = ", ".join(draw(one_of(part)) for part in (PRINCIPALS, ACTIONS, RESOURCES))
        kinds = draw(st.lists(st.sampled_from(["when", "unless"]), max_size=3))
        clauses = " ".join(f"{kind} {{ {draw(conditions(atoms))} }}" for kind in kinds)
        statements.append(f"{effect} ({scope}) {clauses};")
    return statements


CONTEXTS = st.fixed_dictionaries(
    {"flag": st.booleans(), "number": st.sampled_from([0, 1, 5]), "text": st.sampled_from(["abc", "", "b"])}
)
SATISFIED = st.sampled_from([CLASSES[:count] for count in range(len(CLASSES) + 1)])


def parsed(statements: Sequence[str]) -> tuple[Policy, ...]:
    return parse_policies("x", "".join(policy(f"p{index}", text) for index, text in enumerate(statements)))


def as_written(policies: Sequence[Policy], subject: Subject, context: dict[str, Any], satisfied: Any) -> Answer:
    """Ask about all policies, each as it stands in its file, whatever action it is about."""
    whole = json.dumps({**context, "approved": approved_value(satisfied)})
    return Question(SCHEMA, subject, "t").ask_once(policy_handle(policies), whole)


def as_asked(sets: PolicySets, subject: Subject, context: dict[str, Any], satisfied: Any) -> Answer:
    more = {} if sets.asks_thread else {"approved": approved_value(satisfied)}
    return Question(SCHEMA, subject, "t").ask(sets, {**context, **more}, satisfied)


def sets_of(policies: Sequence[Policy], many: int, group: int, alike: int = ALIKE) -> PolicySets:
    sliced = slices_for(policies, {"t": frozenset(GROUPS)})["t"]
    return policy_sets((one.tree for one in sliced.policies.values()), many=many, group=group, alike=alike)


def compare(statements: Sequence[str], subject: Subject, context: dict[str, Any], satisfied: Any) -> Answer:
    """Return the answer of the policies as they were written. Raise AssertionError where a set answers otherwise."""
    policies = parsed(statements)
    expected = as_written(policies, subject, context, satisfied)
    for many, group, alike in ((100, 32, 100), (0, 2, 100), (2, 3, 100), (0, 100, 100), (100, 2, 0), (3, 2, 1)):
        assert as_asked(sets_of(policies, many, group, alike), subject, context, satisfied) == expected
    return expected


ANY_EXAMPLES = settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@given(policies_of(SOUND), st.sampled_from([ANA, BOB]), CONTEXTS, SATISFIED)
@ANY_EXAMPLES
def test_sliced_and_grouped_policies_answer_as_the_ones_that_were_written(
    statements: list[str], subject: Subject, context: dict[str, Any], satisfied: tuple[str, ...]
) -> None:
    assert compare(statements, subject, context, satisfied).clean


@pytest.mark.slow
@given(policies_of(SOUND + FAILING), st.sampled_from([ANA, BOB]), CONTEXTS, SATISFIED)
@ANY_EXAMPLES
def test_they_fail_where_the_ones_that_were_written_fail(
    statements: list[str], subject: Subject, context: dict[str, Any], satisfied: tuple[str, ...]
) -> None:
    assert compare(statements, subject, context, satisfied) == as_written(
        parsed(statements), subject, context, satisfied
    )


@pytest.mark.slow
@given(policies_of(SOUND + FAILING + ODD), st.sampled_from([ANA, BOB]), CONTEXTS, SATISFIED)
@ANY_EXAMPLES
def test_what_the_lint_refuses_is_answered_alike_too(
    statements: list[str], subject: Subject, context: dict[str, Any], satisfied: tuple[str, ...]
) -> None:
    assert compare(statements, subject, context, satisfied) == as_written(
        parsed(statements), subject, context, satisfied
    )


@each_case("failing", FAILING)
@each_case("others", ["true", "false", "context.flag"])
def test_an_error_shows_in_a_group_whatever_the_policies_beside_it_say(failing: str, others: str) -> None:
    """A chain of || would end at the first true and never come to what fails; Cedar would then allow."""
    context = {"flag": True, "number": 5, "text": "abc"}
    allow = "permit (principal, action, resource);"
    for place in range(4):
        statements = [f"forbid (principal, action, resource) when {{ {others} }};"] * 4
        statements[place] = f"forbid (principal, action, resource) when {{ {failing} }};"
        assert not compare([allow, *statements], ANA, context, ()).clean


@each_case("first", ["false", "context.missing"])
@each_case("second", ["false", "context.missing"])
@each_case("kinds", [("when", "when"), ("when", "unless"), ("unless", "when")])
def test_the_clauses_of_a_policy_are_looked_at_in_the_order_in_which_cedar_does(
    first: str, second: str, kinds: tuple[str, str]
) -> None:
    """What is false before it fails does not fail."""
    texts = ("false" if kind == "when" else "true" for kind in kinds)
    written = [
        f"{kind} {{ {text if given == 'false' else given} }}"
        for kind, text, given in zip(kinds, texts, (first, second), strict=True)
    ]
    statement = f"forbid (principal, action, resource) {' '.join(written)};"
    assert compare([statement, statement], ANA, {}, ()).clean == (first == "false")


def test_a_group_that_speaks_is_asked_which_of_its_policies_did() -> None:
    forbids = [
        f'forbid (principal, action, resource) when {{ context.text == "{index}" }};' for index in range(MANY + 2)
    ]
    policies = parsed(["permit (principal, action, resource);", *forbids])
    sets = slices_for(policies, {"t": frozenset(GROUPS)})["t"].sets
    assert len(sets.groups) == -(-(MANY + 2) // GROUP)
    assert len(sets.first) == 1 + len(sets.groups)
    assert as_asked(sets, ANA, {"text": "none"}, ()) == Answer(allowed=True, policy_ids=("p0",), clean=True)
    assert as_asked(sets, ANA, {"text": "7"}, ()) == Answer(allowed=False, policy_ids=("p8",), clean=True)
    assert as_asked(sets, ANA, {"text": str(MANY)}, ()) == Answer(
        allowed=False, policy_ids=(f"p{MANY + 1}",), clean=True
    )


def test_a_list_of_policies_that_differ_in_their_literals_is_grouped_and_a_policy_unlike_them_stays_alone() -> None:
    listed = [
        f'forbid (principal == User::"u{index}", action, resource) when {{ context.text like "*{index}/" }}'
        f" unless {{ [{', '.join(map(str, range(index + 1)))}].contains(context.number) }};"
        for index in range(ALIKE + 1)
    ]
    others = [
        'forbid (principal, action, resource) when { context.text like "*" && context.number == 7 };',
        'forbid (principal == User::"ana", action, resource) when { context.text like "*" };',
        *(f"forbid (principal, action, resource) when {{ context.number == {index} }};" for index in range(ALIKE)),
        *(f'permit (principal, action, resource) when {{ context.text like "{index}" }};' for index in range(ALIKE)),
    ]
    policies = parsed([*listed, *others])
    sets = slices_for(policies, {"t": frozenset(GROUPS)})["t"].sets
    assert [len(one) for one in sets.groups.values()] == [ALIKE + 1]
    assert len(sets.first) == 1 + len(others)
    for context in ({"text": "1/", "number": 7}, {"text": "x", "number": 0}, {"text": "3", "number": 99}):
        compare([*listed, *others], ANA, context, ())


def test_policies_of_several_groups_are_all_named() -> None:
    forbids = [f"forbid (principal, action, resource) when {{ context.number < {index} }};" for index in range(9)]
    sets = sets_of(parsed(forbids), many=2, group=2)
    assert len(sets.groups) == 4
    assert as_asked(sets, ANA, {"number": 4}, ()).policy_ids == ("p5", "p6", "p7", "p8")


def test_a_group_that_speaks_while_nobody_in_it_does_is_not_believed() -> None:
    silent = policy_handle(parsed(["forbid (principal, action, resource) when { false };"]))
    speaking = policy_handle(parse_policies("x", policy("g", "forbid (principal, action, resource);")))
    sets = PolicySets(speaking, {"g": silent}, silent, asks_thread=True)
    assert Question(SCHEMA, ANA, "t").ask(sets, {}) == Answer(allowed=False, policy_ids=(), clean=False)


def test_a_policy_too_deep_for_a_group_stays_alone() -> None:
    deep = "!" * 3 + "(" * 40 + "context.flag" + " && context.flag)" * 40
    clauses = " ".join(["when { context.flag }"] * 90)
    flat = "forbid (principal, action, resource) when { context.flag == false };"
    statements = [
        f"forbid (principal, action, resource) when {{ {'!(' * 70 + 'context.flag' + ')' * 70} }};",
        f"forbid (principal, action, resource) when {{ {deep} }};",
        f"forbid (principal, action, resource) {clauses};",
        *[flat] * 4,
    ]
    for flag in (True, False):
        compare(statements, ANA, {"flag": flag}, ())
    sets = sets_of(parsed(statements), many=2, group=32)
    assert (len(sets.first), len(sets.groups)) == (3, 1)


def test_the_thread_is_asked_for_approvals_only_where_policies_ask_what_can_be_asked_of_text() -> None:
    usual = 'permit (principal, action, resource) when { context.approved.containsAny([Class::"self"]) };'
    assert sets_of(parsed([usual]), 9, 9).asks_thread
    for odd in ODD:
        statements = [usual, f"permit (principal, action, resource) when {{ {odd} }};"]
        assert not sets_of(parsed(statements), 9, 9).asks_thread, odd


def test_actions_that_the_same_policies_concern_share_a_slice() -> None:
    policies = parsed([
        'permit (principal, action in Action::"risk:low", resource);',
        'forbid (principal, action == Action::"c", resource);',
    ])  # fmt: skip
    low, high = frozenset({"risk:low"}), frozenset({"risk:high"})
    slices = slices_for(policies, {"a": low, "b": low, "c": low, "d": high})
    assert slices["a"] is slices["b"]
    assert [list(slices[name].policies) for name in "acd"] == [["p0"], ["p0", "p1"], []]


@pytest.mark.parametrize("asks", ['resource.approved.contains("self")', "resource has approved"])
def test_no_policy_of_a_bundle_asks_the_thread_for_approvals_itself(tmp_path: Path, asks: str) -> None:
    text = policy("p", f"permit (principal, action, resource) when {{ {asks} }};")
    with pytest.raises(BundleError, match="approved"):
        bundle_of(tmp_path, [tool("t")], text)


THREADED = (
    'resource == Thread::"thread-1"', 'resource != Thread::"thread-2"', 'Thread::"thread-1" in Tenant::"acme"',
    '[Thread::"thread-1", Thread::"thread-3"].contains(resource)', 'resource in [Thread::"thread-2", Tenant::"other"]',
    'if resource == Thread::"*" then context.flag else true', "resource == principal", "resource in principal.tenant",
    'resource is Thread in Tenant::"acme"', '{"a": resource}.a == resource',
)  # fmt: skip


@pytest.mark.slow
@ANY_EXAMPLES
@given(
    statements=policies_of((*SOUND[:6], *THREADED)),
    thread=st.sampled_from(["thread-1", "thread-2", "thread-3", "another", ANY_THREAD]),
    tenant=st.sampled_from(["acme", "other"]),
)
def test_what_stands_for_a_thread_gets_the_answer_of_the_thread(statements: list[str], thread: str, tenant: str):
    piece = slices_for(parsed(statements), {"t": frozenset(GROUPS)})["t"]
    context = {"flag": True, "number": 5, "text": "abc"}
    subject = ANA._replace(thread=thread, thread_tenant=tenant)
    stands = subject._replace(thread=piece.thread_of(thread))
    real = Question(SCHEMA, subject, "t").ask(piece.sets, context)
    assert Question(SCHEMA, stands, "t").ask(piece.sets, context) == real


def test_a_thread_a_policy_names_is_asked_about_by_its_name_and_every_other_by_one():
    named_in = [
        'permit (principal, action, resource == Thread::"a");',
        'forbid (principal, action, resource) when { [Thread::"b"].contains(resource) };',
        'permit (principal == Thread::"c", action, resource);',
        'permit (principal, action, resource in Thread::"d");',
        'permit (principal, action, resource is Thread in Thread::"e");',
    ]
    piece = slices_for(parsed(named_in), {"t": frozenset(GROUPS)})["t"]
    assert piece.threads == {"a", "b", "c", "d", "e"}
    assert [piece.thread_of(one) for one in ("a", "e", "f")] == ["a", "e", ANY_THREAD]
