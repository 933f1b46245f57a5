"""Budgets in a bundle, and their facts in a decision, before anything is stored."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from phylactery_riskgate.domain.bundle.bundle import (
    Bundle,
    BundleError,
    default_bundle_folder,
    load_bundle,
)
from phylactery_riskgate.domain.bundle.case_runner import run_bundle_tests
from phylactery_riskgate.domain.model import Counters, Decision, Verdict
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.usage import MAX_AMOUNT, UsageReader, amount_text, read_amount, units_of

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, bundle_of, decide, policy, tool
from tests.support.riskgate.policies import without_policy

MONEY = Path(__file__).parents[1] / "money_bundle"
NOTHING = Counters(0, 0, 0, 0)
PAY = tool(
    "pay",
    {"to": {"type": ["string", "null"]}, "amount": {"type": ["number", "null"]}, "all": {"type": "boolean"}},
    effect="irreversible",
    amount="/amount",
    recipients=["/to"],
)
DAILY = {"name": "daily", "tools": ["pay"], "per": ["user"], "window_seconds": 60, "limits": {"amount": 100}}


def told(counted: Counters = NOTHING) -> UsageReader:
    return lambda tool, _charge: {budget.name: counted for budget in tool.budgets}


def bundle_with(folder: Path, *budgets: Mapping[str, Any], policies: str = ALLOW_ALL, tools: Any = (PAY,)) -> Bundle:
    return bundle_of(folder, list(tools), policies, settings={**SETTINGS, "budgets": list(budgets)})


@pytest.fixture
def engine(tmp_path: Path) -> DecisionEngine:
    return DecisionEngine(bundle_with(tmp_path, DAILY))


def only_reason(verdict: Verdict) -> tuple[str, str]:
    assert (verdict.decision, verdict.policy_ids, len(verdict.reasons)) == (Decision.BLOCKED, (), 1)
    return verdict.reasons[0].code, verdict.reasons[0].path


# ---- the bundle -----------------------------------------------------------------------------------------------------


def test_the_money_bundle_keeps_what_its_cases_promise_and_every_policy_of_it_is_needed() -> None:
    bundle = load_bundle(MONEY)
    assert [result.differences for result in run_bundle_tests(bundle)] == [()] * len(bundle.cases)
    for one in bundle.policies:
        assert not all(result.passed for result in run_bundle_tests(without_policy(bundle, one.id))), one.id


def test_a_group_counts_every_tool_in_it_and_a_tenant_is_always_apart() -> None:
    tools = load_bundle(MONEY).tools
    counted = {name: [budget.name for budget in one.budgets] for name, one in tools.items()}
    assert counted == {"transfer": ["daily", "pace"], "notify": ["pace"], "balance": []}
    assert {budget.name: budget.per for budget in tools["transfer"].budgets} == {
        "daily": ("user",),
        "pace": ("thread",),
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tools": ["pay", "fly"]}, "fly is neither a tool of the catalog nor a group"),
        ({"tools": ["effect:fly"]}, "effect:fly is neither"),
        ({"tools": []}, "tools"),
        ({"per": ["planet"]}, "per"),
        ({"per": []}, "per"),
        ({"name": "Daily"}, "name"),
        ({"window_seconds": 0}, "window_seconds"),
        ({"window_seconds": 31_622_401}, "window_seconds"),
        ({"limits": {"amount": -1}}, "amount"),
        ({"limits": {"amount": 0.00001}}, "at most four places"),
        ({"limits": {"amount": 922337203685477.6}}, "at most four places"),
        ({"limits": {"calls": 0}}, "calls"),
        ({"limits": {"calls": 10_001}}, "calls"),
        ({"limits": {"calls": True}}, "calls"),
        ({"limits": {"sum": 1}}, "sum"),
        ({"tools": ["echo"]}, "limits amount, and its tool echo declares none"),
        ({"tools": ["echo"], "limits": {"recipients": 1}}, "limits recipients, and its tool echo declares none"),
    ],
)
def test_a_budget_that_could_not_be_kept_is_no_bundle(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        bundle_with(tmp_path, DAILY | change, tools=(PAY, tool("echo")))
    assert caught.value.file == "riskgate.yaml"


def test_two_budgets_of_one_name_are_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(BundleError, match="repeats the budget daily"):
        bundle_with(tmp_path, DAILY, DAILY)


@pytest.mark.parametrize(
    ("role", "message"),
    [
        ({"amount": "/to"}, "/to is not a number"),
        ({"amount": "/nothing"}, "leads to no property"),
        ({"recipients": ["/amount"]}, "neither a text nor a list of texts"),
        ({"recipients": ["/lists"]}, "neither a text nor a list of texts"),
        ({"currency": "/to"}, "needs an enum of currencies"),
        ({"currency": "/folded"}, "needs an enum of currencies"),
    ],
)
def test_an_argument_that_cannot_have_the_role_is_no_catalog(
    tmp_path: Path, role: dict[str, Any], message: str
) -> None:
    properties = {
        "to": {"type": "string"},
        "amount": {"type": "number"},
        "lists": {"type": "array", "items": {"type": ["string", "null"]}},
        "folded": {"type": "string", "enum": ["EUR", "eur"]},
    }
    with pytest.raises(BundleError, match=message) as caught:
        bundle_of(tmp_path, [tool("pay", properties, **role)], ALLOW_ALL)
    assert caught.value.file == "tools.yaml"


def test_a_case_about_a_budget_that_is_not_there_is_no_case(tmp_path: Path) -> None:
    case = {"name": "x", "tool": "pay", "usage": {"dayly": {"calls": 1}}, "expect": {"decision": "ALLOW"}}
    with pytest.raises(BundleError, match="unknown budget 'dayly'"):
        bundle_of(
            tmp_path,
            [PAY],
            ALLOW_ALL,
            settings={**SETTINGS, "budgets": [DAILY]},
            cases={"cases": [case]},
        )


# ---- limits ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("limits", "counted", "texts"),
    [
        (
            {"calls": 2},
            Counters(2, 0, 0, 0),
            ("The budget daily has no calls left.", "Al presupuesto daily no le quedan llamadas."),
        ),
        (
            {"amount": 100},
            Counters(1, units_of(77.6) or 0, 0, 0),
            ("The budget daily does not cover this amount.", "El presupuesto daily no cubre este importe."),
        ),
        (
            {"recipients": 2},
            Counters(1, 0, 2, 1),
            ("The budget daily allows no more recipients.", "El presupuesto daily no admite más destinatarios."),
        ),
    ],
)
def test_a_call_past_a_limit_is_blocked_in_both_languages_without_a_value(
    tmp_path: Path, limits: dict[str, Any], counted: Counters, texts: tuple[str, str]
) -> None:
    engine = DecisionEngine(bundle_with(tmp_path, DAILY | {"limits": limits}))
    call = {"to": "bob", "amount": 22.5}
    verdict = decide(engine, "pay", call, usage=told(counted))
    assert only_reason(verdict) == ("BUDGET_EXCEEDED", "")
    assert (verdict.reasons[0].message, verdict.reasons[0].message_es) == texts
    assert verdict.exceeded == ("daily",)
    one_less = Counters(counted.calls - 1, counted.amount - 1000, counted.recipients - 1, counted.new_recipients)
    assert decide(engine, "pay", call, usage=told(one_less)).decision is Decision.ALLOW


def test_no_approval_opens_a_budget(engine: DecisionEngine) -> None:
    verdict = decide(
        engine, "pay", {"to": "bob", "amount": 101}, usage=told(), approved=frozenset({"self", "peer", "dual"})
    )
    assert only_reason(verdict)[0] == "BUDGET_EXCEEDED"


def test_every_budget_that_is_passed_is_named(tmp_path: Path) -> None:
    budgets = (DAILY, DAILY | {"name": "weekly"}, DAILY | {"name": "wide", "limits": {}})
    verdict = decide(DecisionEngine(bundle_with(tmp_path, *budgets)), "pay", {"amount": 101}, usage=told())
    assert verdict.exceeded == ("daily", "weekly")
    assert [one.code for one in verdict.reasons] == ["BUDGET_EXCEEDED"] * 2


def test_a_budget_without_a_limit_counts_up_to_what_is_stored(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_with(tmp_path, DAILY | {"limits": {}}))
    assert decide(engine, "pay", {"amount": 1}, usage=told(Counters(9_999, 0, 0, 0))).decision is Decision.ALLOW
    assert only_reason(decide(engine, "pay", {"amount": 1}, usage=told(Counters(10_000, 0, 0, 0))))[0] == (
        "BUDGET_EXCEEDED"
    )


# ---- hostile amounts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ('{"amount": -5}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"amount": -0.0001}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"amount": 0.00001}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"amount": 922337203685477.6}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"amount": 1e300}', ("NUMBER_OUT_OF_RANGE", "")),
        ('{"amount": null}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"to": "bob"}', ("AMOUNT_NOT_COUNTABLE", "/amount")),
        ('{"amount": "5"}', ("SCHEMA_VIOLATION", "/amount")),
        ('{"amount": true}', ("SCHEMA_VIOLATION", "/amount")),
        ('{"amount": 1e999}', ("NUMBER_OUT_OF_RANGE", "")),
        ('{"amount": NaN}', ("NUMBER_OUT_OF_RANGE", "")),
        ('{"amount": 5, "amount": 500}', ("DUPLICATE_KEY", "/amount")),
    ],
)
def test_an_amount_that_cannot_be_counted_is_blocked(
    engine: DecisionEngine, arguments: str, expected: tuple[str, str]
) -> None:
    assert only_reason(decide(engine, "pay", arguments, usage=told())) == expected


@pytest.mark.parametrize("arguments", ['{"amount": 0}', '{"amount": -0.0}', '{"amount": 100}', '{"amount": 1e2}'])
def test_an_amount_at_the_edge_is_counted(engine: DecisionEngine, arguments: str) -> None:
    assert decide(engine, "pay", arguments, usage=told()).decision is Decision.ALLOW


def test_a_sum_that_cannot_be_held_is_blocked_whatever_the_limits(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_with(tmp_path, DAILY | {"limits": {}}))
    for counted, expected in ((MAX_AMOUNT - 10_000, ""), (MAX_AMOUNT - 9_999, "AMOUNT_NOT_COUNTABLE")):
        verdict = decide(engine, "pay", {"amount": 1}, usage=told(Counters(1, counted, 0, 0)))
        assert (verdict.reasons[0].code if expected else "") == expected
        assert (verdict.decision is Decision.BLOCKED) == bool(expected)


def test_a_call_without_its_currency_is_blocked(tmp_path: Path) -> None:
    properties = {"amount": {"type": "number"}, "currency": {"type": "string", "enum": ["EUR", "USD"]}}
    entry = tool("pay", properties, amount="/amount", currency="/currency")
    engine = DecisionEngine(bundle_with(tmp_path, DAILY, tools=(entry,)))
    assert only_reason(decide(engine, "pay", {"amount": 1}, usage=told())) == ("AMOUNT_NOT_COUNTABLE", "/currency")


def test_more_recipients_than_are_counted_block(tmp_path: Path) -> None:
    entry = tool("write", {"to": {"type": "array", "items": {"type": "string"}}}, recipients=["/to"])
    budget = {**DAILY, "tools": ["write"], "limits": {}}
    engine = DecisionEngine(bundle_with(tmp_path, budget, tools=(entry,)))
    many = [f"person-{number}" for number in range(1_001)]
    assert decide(engine, "write", {"to": many[1:] * 2}, usage=told()).decision is Decision.ALLOW
    assert only_reason(decide(engine, "write", {"to": many}, usage=told())) == ("RECIPIENTS_NOT_COUNTABLE", "/to")


# ---- what is read, and what policies see ----------------------------------------------------------------------------


def test_nothing_is_read_for_a_tool_that_no_budget_counts(tmp_path: Path) -> None:
    def never(_tool: Any, _charge: Any) -> Mapping[str, Counters]:
        raise AssertionError("nothing is read")

    engine = DecisionEngine(bundle_with(tmp_path, DAILY, tools=(PAY, tool("echo"))))
    assert decide(engine, "echo", {}, usage=never).decision is Decision.ALLOW
    assert (engine.counts("echo"), engine.counts("pay"), engine.counts("nothing")) == (False, True, False)


def test_a_counted_call_without_its_counters_is_blocked_until_they_are_read(engine: DecisionEngine) -> None:
    verdict = decide(engine, "pay", {"to": "bob", "amount": 1})
    assert only_reason(verdict) == ("USAGE_UNKNOWN", "")
    assert verdict.bound is not None


@pytest.mark.parametrize(
    ("condition", "blocked"),
    [
        ("context.usage.daily.calls == 3", True),
        ("context.usage.daily.calls > 3", False),
        ("context.usage.daily.after.calls == 4", True),
        ('context.usage.daily.amount == decimal("12.5")', True),
        ('context.usage.daily.after.amount == decimal("20.0")', True),
        ("context.usage.daily.recipients == 2", True),
        ("context.usage.daily.new_recipients == 1", True),
        ("context.usage.daily.new_recipient", True),
        ("context.usage.daily.after.recipients == 3", True),
        ("context.usage has daily && context.usage.daily.calls == 3", True),
    ],
)
def test_policies_see_what_was_counted_and_what_would_be(tmp_path: Path, condition: str, blocked: bool) -> None:
    only = f'forbid (principal, action == Action::"pay", resource) when {{ {condition} }};'
    policies = ALLOW_ALL + policy("no", only)
    engine = DecisionEngine(bundle_with(tmp_path, DAILY, policies=policies))
    counted = Counters(3, units_of(12.5) or 0, 2, 1)
    verdict = decide(engine, "pay", {"to": "bob", "amount": 7.5}, usage=told(counted))
    assert (verdict.decision is Decision.BLOCKED) == blocked
    assert verdict.usage == {"daily": counted}
    assert "12.5" not in str(verdict.facts)


@pytest.mark.parametrize("condition", ["context.usage.dayly.calls > 1", "context.usage has dayly"])
def test_a_policy_over_a_budget_that_is_not_there_is_no_bundle(tmp_path: Path, condition: str) -> None:
    policies = ALLOW_ALL + policy("no", f"forbid (principal, action, resource) when {{ {condition} }};")
    with pytest.raises(BundleError, match="dayly"):
        bundle_with(tmp_path, DAILY, policies=policies)


@given(st.integers(0, MAX_AMOUNT))
def test_an_amount_is_written_and_read_without_loss(units: int) -> None:
    assert read_amount(amount_text(units)) == units


@pytest.mark.parametrize("text", ["-1", "NaN", "Infinity", "x", "0.00001", "1e40"])
def test_what_is_no_amount_is_not_read(text: str) -> None:
    with pytest.raises(ValueError, match="no amount"):
        read_amount(text)


def test_what_the_default_bundle_shows_in_comments_is_a_bundle(tmp_path: Path) -> None:
    lines = (default_bundle_folder() / "riskgate.yaml").read_text().splitlines()
    at, last = lines.index("# targets:"), lines.index("# budgets:")
    shown = [line[2:] for line in (*lines[at : at + 2], *lines[last:])]
    written = yaml.safe_load("\n".join(shown))
    properties = {"to": {"type": "string"}, "amount": {"type": "number"}}
    transfer = tool("transfer", properties, effect="irreversible", amount="/amount", recipients=["/to"])
    bundle = bundle_of(tmp_path, [transfer], ALLOW_ALL, settings={**SETTINGS, **written})
    assert [one.name for one in bundle.tools["transfer"].budgets] == ["daily_transfers", "writes_per_minute"]
    assert bundle.tools["transfer"].allowed_targets == {"api.example.org", "*.bank.example"}
