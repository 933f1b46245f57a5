"""Properties of every call and every policy set, not only of hand-picked ones."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import cedarpy
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from phylactery_riskgate.domain.bundle.bundle import Bundle, read_bundle
from phylactery_riskgate.domain.bundle.files import read_parts
from phylactery_riskgate.domain.canonical import canonical_bytes
from phylactery_riskgate.domain.catalog.submissions import NOTHING_SUBMITTED
from phylactery_riskgate.domain.facts.facts import ContextBuilder
from phylactery_riskgate.domain.facts.types import Mentions
from phylactery_riskgate.domain.intent.model import UNSHOWN
from phylactery_riskgate.domain.model import Caller, CallSite, Decision, RawCall
from phylactery_riskgate.domain.policy.authorizer import Question, _entities_of
from phylactery_riskgate.domain.policy.binding import Binder, BindingError
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.guard import MAX_SAFE_INTEGER, GuardError, read_json
from phylactery_riskgate.domain.policy.policies import parse_policies, policy_handle
from phylactery_riskgate.domain.policy.usage import NO_USAGE

from tests.support.riskgate.bundle_cache import default_engine
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, policy, tool
from tests.support.riskgate.policies import lint

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=20)
NUMBERS = st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER) | st.floats(-1e15, 1e15, allow_nan=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inside: st.lists(inside, max_size=4) | st.dictionaries(TEXT, inside, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(TEXT, VALUES, max_size=5)

ITEM = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "qty": {"type": "integer", "default": 1}},
    "required": ["name"],
    "additionalProperties": False,
}
RICH = tool(
    "rich",
    {
        "text": {"type": "string"},
        "count": {"type": "integer", "default": 3},
        "amount": {"type": ["number", "null"]},
        "flag": {"type": "boolean", "default": False},
        "tags": {"type": "array", "items": {"type": "string"}},
        "items": {"type": "array", "items": ITEM},
        "inner": {**ITEM, "default": {"name": "n"}},
    },
    required=("text",),
)
RICH_ARGUMENTS = st.fixed_dictionaries(
    {"text": TEXT},
    optional={
        "count": st.integers(-5, 5),
        "amount": st.none() | st.decimals(-9999, 9999, places=2).map(float),
        "flag": st.booleans(),
        "tags": st.lists(TEXT, max_size=3),
        "items": st.lists(st.fixed_dictionaries({"name": TEXT}, optional={"qty": st.integers(0, 9)}), max_size=3),
        "inner": st.fixed_dictionaries({"name": TEXT}, optional={"qty": st.integers(0, 9)}),
    },
)
ANA = Caller("ana", "acme")
SITE = CallSite("thread-1", "run-1")


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Bundle:
    return bundle_of(tmp_path_factory.mktemp("rich"), [RICH, tool("u", risk="high", effect="write")], ALLOW_ALL)


@pytest.fixture(scope="module")
def packaged() -> DecisionEngine:
    return default_engine()


@given(OBJECTS)
def test_the_canonical_form_is_a_fixed_point(value: dict[str, Any]) -> None:
    assume(all(key not in {"__entity", "__extn", "__expr"} for key in value))
    once = canonical_bytes(read_json(json.dumps(value)))
    assert canonical_bytes(read_json(once.decode())) == once


def outcome_of_guard(text: str) -> str:
    try:
        return type(read_json(text)).__name__
    except GuardError as error:
        return error.code


@given(st.text(max_size=200) | st.binary(max_size=200).map(lambda data: data.decode("utf-8", "surrogateescape")))
def test_no_text_makes_the_guard_fail_in_another_way_than_its_own(text: str) -> None:
    outcome = outcome_of_guard(text)
    assert outcome == "dict" or outcome.isupper()


@given(RICH_ARGUMENTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_binding_what_is_bound_changes_nothing(rich: Bundle, arguments: dict[str, Any]) -> None:
    binder = Binder(rich.tools["rich"])
    once = binder.bind(read_json(json.dumps(arguments)))
    assert binder.bind(once.arguments) == once
    assert binder.bind(read_json(once.arguments_json)) == once


def outcome_of_binding(binder: Binder, arguments: dict[str, Any]) -> set[str]:
    try:
        return {binder.bind(read_json(json.dumps(arguments))).tool}
    except BindingError as error:
        return {one.code for one in error.reasons}
    except GuardError:
        return {"GUARD"}


@given(RICH_ARGUMENTS, OBJECTS)
def test_whatever_is_added_the_binder_binds_or_refuses(
    rich: Bundle, arguments: dict[str, Any], more: dict[str, Any]
) -> None:
    outcome = outcome_of_binding(Binder(rich.tools["rich"]), {**arguments, **more})
    assert outcome in ({"rich"}, {"SCHEMA_VIOLATION"}, {"GUARD"})


@pytest.mark.slow
@given(st.sampled_from(["echo", "read_file", "write_file", "read_output", "nothing"]), OBJECTS, TEXT)
def test_a_decision_is_the_same_every_time(
    packaged: DecisionEngine, name: str, more: dict[str, Any], path: str
) -> None:
    call = RawCall(name, "call-1", arguments_json=json.dumps({"path": path, "content": "x", **more}))
    again = DecisionEngine(packaged.bundle)
    assert packaged.decide(call, ANA, SITE) == again.decide(call, ANA, SITE) == again.decide(call, ANA, SITE)


# ---- approval is monotone, and pruning changes nothing, for any policies the lint accepts ---------------------------

CLASSES = ("self", "peer", "dual")
RANK = {Decision.BLOCKED: 0, Decision.AUTH_REQUIRED: 1, Decision.ALLOW: 2}
ASKS = st.sampled_from(CLASSES).map(lambda name: f'context.approved.contains(Class::"{name}")') | st.sets(
    st.sampled_from(CLASSES), min_size=1
).flatmap(
    lambda names: st.sampled_from(["containsAny", "containsAll"]).map(
        lambda method: (
            f"context.approved.{method}([{', '.join(f'Class::{json.dumps(name)}' for name in sorted(names))}])"
        )
    )
)
FACTS = st.sampled_from(
    [
        'context.args.text == "x"',
        "context.args.count > 2",
        "context.args.flag",
        'context.args has amount && context.args.amount.lessThan(decimal("5.0"))',
        'context.nulls.contains("/amount")',
        'context.args has tags && context.args.tags.contains("a")',
        "context.derived has items && context.derived.items.count > 1",
        "context.derived has items && context.derived.items.each.qty.sum > 2",
        "context.args.inner.qty == 1",
        'principal.level == Level::"admin"',
        "resource in principal.tenant",
    ]
)
CONDITIONS = st.recursive(
    ASKS | FACTS,
    lambda inside: (
        st.tuples(inside, inside, st.sampled_from(["&&", "||"])).map(lambda t: f"(({t[0]}) {t[2]} ({t[1]}))")
        | inside.map(lambda one: f"!({one})")
    ),
    max_leaves=4,
)
POLICIES = st.lists(
    st.tuples(st.sampled_from(["permit", "forbid"]), st.sampled_from(["when", "unless"]), CONDITIONS),
    min_size=1,
    max_size=4,
)
SUBSETS = st.frozensets(st.sampled_from(CLASSES))


def engine_of(rich: Bundle, written: list[tuple[str, str, str]]) -> DecisionEngine:
    text = "".join(
        policy(f"p{index}", f'{effect} (principal, action == Action::"rich", resource) {word} {{ {condition} }};')
        for index, (effect, word, condition) in enumerate(written)
    )
    policies = parse_policies("x.cedar", text)
    assume(not lint(policies, rich.tools, rich.classes))
    for one in policies:
        assert one.title
    return DecisionEngine(replace(rich, policies=policies))


@pytest.mark.slow
@given(POLICIES, RICH_ARGUMENTS, st.tuples(SUBSETS, SUBSETS), st.sampled_from(["user", "admin"]))
@settings(max_examples=300, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
def test_more_approval_never_allows_less(
    rich: Bundle,
    written: list[tuple[str, str, str]],
    arguments: dict[str, Any],
    approvals: tuple[frozenset[str], frozenset[str]],
    level: str,
) -> None:
    engine = engine_of(rich, written)
    call = RawCall("rich", "call-1", arguments_json=json.dumps(arguments))
    caller = ANA._replace(level=level)
    fewer, more = approvals
    less = engine.decide(call, caller, SITE, approved=fewer)
    most = engine.decide(call, caller, SITE, approved=fewer | more)
    assert RANK[less.decision] <= RANK[most.decision]
    if less.decision is Decision.AUTH_REQUIRED:
        granted = engine.decide(call, caller, SITE, approved=frozenset({less.approval_class or ""}))
        assert granted.decision is Decision.ALLOW


@pytest.mark.slow
@given(POLICIES, RICH_ARGUMENTS, SUBSETS)
@settings(max_examples=200, suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow], deadline=None)
def test_leaving_out_what_no_policy_looks_at_changes_no_decision(
    rich: Bundle, written: list[tuple[str, str, str]], arguments: dict[str, Any], approved: frozenset[str]
) -> None:
    engine = engine_of(rich, written)
    verdict = engine.decide(RawCall("rich", "call-1", json.dumps(arguments)), ANA, SITE, approved=approved)
    assert verdict.bound is not None
    prepared = engine._prepared["rich"]
    whole = ContextBuilder(rich.tools["rich"], Mentions(whole=True)).build(
        verdict.bound,
        UNSHOWN,
        {
            "usage": NO_USAGE.value,
            "pathway": "unspecified",
            "submission": NOTHING_SUBMITTED._asdict(),
            "stakes": "high",
        },
    )
    satisfied = engine._highest(approved)
    whole["approved"] = [{"type": "Class", "id": name} for name in satisfied]
    subject = engine._subject(ANA, SITE)
    request = {**Question(prepared.schema, subject, "rich")._request, "context": whole}
    # With the whole context Cedar can also check it against the schema, which the pruned one cannot pass.
    policies = policy_handle(engine.bundle.policies)
    result = cedarpy.is_authorized(request, policies, _entities_of(prepared.schema, subject, ()), schema=rich.schema)
    assert result.diagnostics.errors == []
    assert result.allowed is (verdict.decision is Decision.ALLOW)


def test_the_generated_policies_are_not_all_refused(rich: Bundle) -> None:
    when = 'context.args.count > 2 || context.approved.contains(Class::"self")'
    text = policy("p", f'permit (principal, action == Action::"rich", resource) when {{ {when} }};')
    assert lint(parse_policies("x.cedar", text), rich.tools, rich.classes) == ()


@pytest.mark.slow
@given(call=RICH_ARGUMENTS, approved=st.frozensets(st.sampled_from(["self", "peer", "dual"])), seed=st.integers(0, 99))
@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
def test_the_same_call_revision_and_facts_always_give_the_same_verdict(
    rich: Bundle, call: dict[str, Any], approved: frozenset[str], seed: int
) -> None:
    """Another engine, made of the same files read in another order, in another thread's place, after other calls."""
    names = list(rich.files.texts)
    random.Random(seed).shuffle(names)
    other = read_bundle(read_parts((name, rich.files.texts[name].encode()) for name in names))
    assert other.hash == rich.hash
    shuffled = dict(sorted(call.items(), key=lambda item: hash((item[0], seed))))
    first, second = DecisionEngine(rich), DecisionEngine(other)
    second.decide(RawCall("u", "c0", arguments_json="{}"), ANA, SITE)
    verdicts = [
        engine.decide(RawCall("rich", "c1", arguments_json=json.dumps(arguments)), ANA, SITE, approved=approved)
        for engine, arguments in ((first, call), (second, shuffled), (first, shuffled))
    ]
    assert verdicts[0] == verdicts[1] == verdicts[2]
