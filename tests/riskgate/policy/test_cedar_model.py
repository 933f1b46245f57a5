"""The traps of riskgate.md, "Found by trying": each shows Cedar's behaviour, or RiskGate's measure against it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import cedarpy
import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError, load_bundle
from phylactery_riskgate.domain.facts.derived import domains_of, host_of_email, host_of_uri
from phylactery_riskgate.domain.model import Decision, Verdict
from phylactery_riskgate.domain.policy.authorizer import Question, Subject, silent_groups
from phylactery_riskgate.domain.policy.cedar_schema import SENTINEL, build_entity_schema, group_names
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.policies import parse_policies, policy_handle

from tests.support.cases import each_case
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, decide, policy, tool, write_bundle

LEVELS = ("user", "admin", "system")
ANA = Subject("ana", "acme", "user", (), "thread-1", "acme")


def engine_with(folder: Path, properties: dict[str, Any], forbid_when: str, **entry: Any) -> DecisionEngine:
    text = ALLOW_ALL + policy("no", f"forbid (principal, action, resource) when {{ {forbid_when} }};")
    return DecisionEngine(bundle_of(folder, [tool("t", properties, **entry)], text))


def reason_of(verdict: Verdict) -> tuple[str, str]:
    return verdict.reasons[0].code, verdict.reasons[0].path


# ---- entities and groups --------------------------------------------------------------------------------------------


def test_without_the_schema_a_forbid_over_a_group_is_silently_nothing() -> None:
    policies = policy_handle(
        parse_policies("x", ALLOW_ALL + policy("no", 'forbid (principal, action in Action::"risk:low", resource);'))
    )
    request = {"principal": 'User::"ana"', "action": 'Action::"t"', "resource": 'Thread::"x"', "context": {}}
    assert cedarpy.is_authorized(request, policies, "[]").allowed
    schema = build_entity_schema("t", ["risk:low"], LEVELS)
    answer = Question(schema, ANA, "t").ask_once(policies, "{}")
    assert (answer.allowed, answer.policy_ids) == (False, ("no",))


def test_a_policy_over_every_group_fires() -> None:
    assert silent_groups(LEVELS) == ()
    assert len(group_names(LEVELS)) == 18


def test_what_is_irreversible_is_a_write_too(tmp_path: Path) -> None:
    text = ALLOW_ALL + policy("no-write", 'forbid (principal, action in Action::"effect:write", resource);')
    engine = DecisionEngine(bundle_of(tmp_path, [tool("pay", effect="irreversible")], text))
    assert decide(engine, "pay", {}).policy_ids == ("no-write",)


def test_a_policy_over_a_group_without_tools_validates(tmp_path: Path) -> None:
    text = ALLOW_ALL + policy("no", 'forbid (principal, action in Action::"effect:irreversible", resource);')
    assert len(bundle_of(tmp_path, [tool("t")], text).policies) == 2


def test_no_tool_can_be_named_like_the_sentinel_or_a_group(tmp_path: Path) -> None:
    for name in (SENTINEL, "risk:low"):
        with pytest.raises(BundleError, match="tools/0/name"):
            bundle_of(tmp_path, [tool(name)], ALLOW_ALL)


# ---- errors ---------------------------------------------------------------------------------------------------------


def test_cedar_skips_a_forbid_that_errs_and_the_answer_is_not_believed() -> None:
    text = ALLOW_ALL + policy("no", "forbid (principal, action, resource) when { 9223372036854775807 + 1 > 0 };")
    policies = policy_handle(parse_policies("x", text))
    schema = build_entity_schema("t", ["risk:low"], LEVELS)
    request = {"principal": 'User::"ana"', "action": 'Action::"t"', "resource": 'Thread::"x"', "context": {}}
    assert cedarpy.is_authorized(request, policies, cedarpy.Entities.from_json_str("[]", schema)).allowed
    answer = Question(schema, ANA, "t").ask_once(policies, "{}")
    assert (answer.allowed, answer.clean) == (False, False)


def test_no_decision_is_not_believed() -> None:
    schema = build_entity_schema("t", ["risk:low"], LEVELS)
    answer = Question(schema, ANA, "t").ask_once(policy_handle(parse_policies("x", ALLOW_ALL)), '{"a": 1.5}')
    assert (answer.allowed, answer.clean) == (False, False)


# ---- never drop a value ---------------------------------------------------------------------------------------------

AMOUNT = {"amount": {"type": "number"}}
OVER = 'context.args has amount && context.args.amount.greaterThan(decimal("5000.0"))'


@pytest.mark.parametrize(
    ("amount", "decision"),
    [("5000", Decision.ALLOW), ("5000.0001", Decision.BLOCKED), ("-1.5", Decision.ALLOW), ("1e4", Decision.BLOCKED)],
)
def test_a_number_is_compared_as_a_decimal(tmp_path: Path, amount: str, decision: Decision) -> None:
    engine = engine_with(tmp_path, AMOUNT, OVER)
    assert decide(engine, "t", f'{{"amount":{amount}}}').decision is decision


@pytest.mark.parametrize("amount", ["5000.00001", "1e-5", "922337203685478", "0.12345"])
def test_a_number_a_decimal_cannot_hold_exactly_blocks(tmp_path: Path, amount: str) -> None:
    engine = engine_with(tmp_path, AMOUNT, OVER)
    verdict = decide(engine, "t", f'{{"amount":{amount}}}')
    assert (verdict.decision, reason_of(verdict)) == (Decision.BLOCKED, ("VALUE_NOT_REPRESENTABLE", "/amount"))


def test_a_number_no_policy_looks_at_blocks_nothing(tmp_path: Path) -> None:
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t", AMOUNT)], ALLOW_ALL))
    assert decide(engine, "t", {"amount": 5000.00001}).decision is Decision.ALLOW


def test_a_null_is_not_there_for_has_and_stands_in_nulls(tmp_path: Path) -> None:
    nullable = {"amount": {"type": ["number", "null"]}, "a": {"anyOf": [{"type": "string"}, {"type": "null"}]}}
    engine = engine_with(tmp_path, nullable, f'{OVER} || context.nulls.contains("/amount")')
    assert decide(engine, "t", {"amount": None}).policy_ids == ("no",)
    assert decide(engine, "t", {"a": None}).decision is Decision.ALLOW
    assert decide(engine, "t", {}).decision is Decision.ALLOW


WHEN = {"at": {"type": "string", "format": "date-time"}}
LATE = 'context.args has at && context.args.at > datetime("2026-01-01T00:00:00.000Z")'


@pytest.mark.parametrize(
    ("at", "decision"),
    [
        ("2026-01-01T00:00:00Z", Decision.ALLOW),
        ("2026-01-01T00:00:00.001Z", Decision.BLOCKED),
        ("2026-01-01T01:00:00+02:00", Decision.ALLOW),
        ("2025-12-31T23:30:00-01:00", Decision.BLOCKED),
        ("0999-01-01T00:00:00Z", Decision.ALLOW),
    ],
)
def test_a_date_time_is_compared_in_utc(tmp_path: Path, at: str, decision: Decision) -> None:
    verdict = decide(engine_with(tmp_path, WHEN, LATE), "t", {"at": at})
    assert verdict.decision is decision
    assert verdict.policy_ids == (("no",) if decision is Decision.BLOCKED else ("allow",))


@pytest.mark.parametrize("at", ["2026-01-01T00:00:00.0001Z", "2026-01-01T00:00:00.0000001Z", "2016-12-31T23:59:60Z"])
def test_a_date_time_finer_than_a_millisecond_blocks(tmp_path: Path, at: str) -> None:
    assert reason_of(decide(engine_with(tmp_path, WHEN, LATE), "t", {"at": at})) == ("VALUE_NOT_REPRESENTABLE", "/at")


# ---- lists ----------------------------------------------------------------------------------------------------------

ITEMS = {
    "items": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"sku": {"type": "string"}, "qty": {"type": "integer"}, "price": {"type": "number"}},
            "required": ["sku"],
            "additionalProperties": False,
        },
    }
}


@pytest.mark.parametrize(
    ("when", "blocked"),
    [
        ("context.derived.items.count > 1", True),
        ("context.derived.items.each.qty.sum > 4", True),
        ("context.derived.items.each.qty.sum > 5", False),
        ("context.derived.items.each.qty has max && context.derived.items.each.qty.max == 3", True),
        ("context.derived.items.each.qty has min && context.derived.items.each.qty.min == 2", True),
        ('context.derived.items.each.sku.values.contains("bomb")', True),
        ('context.derived.items.each.sku.values.contains("nothing")', False),
        ('context.derived.items.each.price.sum.greaterThan(decimal("0.3"))', False),
        ('context.derived.items.each.price.sum.greaterThan(decimal("0.2999"))', True),
    ],
)
def test_a_list_of_objects_is_seen_through_its_derived_facts(tmp_path: Path, when: str, *, blocked: bool) -> None:
    engine = engine_with(tmp_path, ITEMS, f"context.derived has items && {when}")
    items = [{"sku": "a", "qty": 2, "price": 0.1}, {"sku": "bomb", "qty": 3, "price": 0.2}]
    assert (decide(engine, "t", {"items": items}).decision is Decision.BLOCKED) is blocked


def test_an_empty_list_has_a_sum_and_no_smallest_element(tmp_path: Path) -> None:
    numbers = {"n": {"type": "array", "items": {"type": "integer"}}}
    when = "context.derived has n && context.derived.n.count == 0 && context.derived.n.sum == 0"
    assert decide(
        engine_with(tmp_path, numbers, f"{when} && !(context.derived.n has min)"), "t", {"n": []}
    ).policy_ids == ("no",)


def test_a_list_of_texts_is_a_set(tmp_path: Path) -> None:
    texts = {"to": {"type": "array", "items": {"type": "string"}}}
    engine = engine_with(tmp_path, texts, 'context.args has to && context.args.to.contains("eve")')
    assert decide(engine, "t", {"to": ["bob", "eve"]}).policy_ids == ("no",)
    assert decide(engine, "t", {"to": ["bob"]}).decision is Decision.ALLOW


def test_a_nested_object_is_a_record(tmp_path: Path) -> None:
    inner = {"type": "object", "properties": {"zip": {"type": "string"}}, "additionalProperties": False}
    when = 'context.args has address.zip && context.args.address.zip == "0"'
    engine = engine_with(tmp_path, {"address": inner}, when)
    assert decide(engine, "t", {"address": {"zip": "0"}}).policy_ids == ("no",)
    assert decide(engine, "t", {"address": {}}).decision is Decision.ALLOW


def test_a_policy_cannot_look_at_a_union_or_a_list_of_objects(tmp_path: Path) -> None:
    from phylactery_riskgate.domain.facts.argument_types import unseen_arguments

    properties = {"u": {"type": ["string", "integer"]}, **ITEMS}
    entry = tool("t", properties)
    assert unseen_arguments(entry["schema"]) == ("/items", "/u")
    with pytest.raises(BundleError, match=r"policies/all\.cedar:1"):
        bundle_of(
            tmp_path, [entry], policy("x", 'permit (principal, action, resource) when { context.args.u == "a" };')
        )


# ---- hosts ----------------------------------------------------------------------------------------------------------


def test_comparing_text_is_fooled_and_comparing_hosts_is_not(tmp_path: Path) -> None:
    url = {"url": {"type": "string", "format": "uri"}}
    text = policy(
        "text", 'permit (principal, action == Action::"t", resource) when { context.args.url like "*.bank.com" };'
    )
    host = policy(
        "host",
        "permit (principal, action, resource) when "
        '{ context.derived has url && context.derived.url.domains.contains("bank.com") };',
    )
    evil = {"url": "https://evil.com/?x=.bank.com"}
    for statement, fooled in ((text, True), (host, False)):
        engine = DecisionEngine(bundle_of(tmp_path, [tool("t", url, required=("url",))], statement))
        assert (decide(engine, "t", evil).decision is Decision.ALLOW) is fooled
    assert decide(engine, "t", {"url": "https://www.bank.com/x"}).decision is Decision.ALLOW


@each_case(
    ("uri", "host"),
    [
        ("https://WWW.Bank.com:8443/a", "www.bank.com"),
        ("https://bank.com.", "bank.com"),
        ("https://bank.com@evil.com/", "evil.com"),
        ("https://evil.com#@bank.com", "evil.com"),
        ("http://127.0.0.1/x", "127.0.0.1"),
        ("http://[2001:DB8::1]/x", "2001:db8::1"),
        ("https://xn--bnk-0na.com", "xn--bnk-0na.com"),
        ("mailto:ana@bank.com", ""),
    ],
)
def test_the_host_is_the_one_every_reader_sees(uri: str, host: str) -> None:
    assert host_of_uri(uri) == host


@each_case(
    "uri",
    [
        "https://evil.com\\@bank.com",
        "https://%65vil.com",
        "http://0x7f.1/",
        "http://2130706433/",
        "http://127.1/",
        "http://127.0.0.1.5/",
        "http://010.0.0.1/",
        "https://bänk.com",
        "https://bank.com\n.evil.com",
        "https://a..b",
        "https://-a.com",
    ],
)
def test_a_host_readers_disagree_about_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        host_of_uri(uri)


def test_a_host_that_cannot_be_told_blocks_where_a_policy_looks_at_it(tmp_path: Path) -> None:
    url = {"url": {"type": "string", "format": "uri"}}
    looks = engine_with(tmp_path, url, 'context.derived has url && context.derived.url.host == "evil.com"')
    assert reason_of(decide(looks, "t", {"url": "http://2130706433/"})) == ("VALUE_NOT_REPRESENTABLE", "/url")


def test_the_domains_of_a_host_are_all_it_lies_in() -> None:
    assert domains_of("a.b.co.uk") == ["a.b.co.uk", "b.co.uk", "co.uk", "uk"]
    assert domains_of("127.0.0.1") == ["127.0.0.1"]
    assert host_of_email("Ana@Mail.Example.ORG") == "mail.example.org"


def test_the_domains_of_a_list_of_addresses_are_seen_together(tmp_path: Path) -> None:
    mails = {"to": {"type": "array", "items": {"type": "string", "format": "email"}}}
    engine = engine_with(tmp_path, mails, 'context.derived has to && context.derived.to.domains.contains("evil.com")')
    assert decide(engine, "t", {"to": ["a@bank.com", "b@mail.evil.com"]}).policy_ids == ("no",)
    assert decide(engine, "t", {"to": ["a@bank.com"]}).decision is Decision.ALLOW


# ---- only what is looked at -----------------------------------------------------------------------------------------


def test_the_context_holds_only_what_the_slice_looks_at(tmp_path: Path) -> None:
    properties = {"a": {"type": "string"}, "b": {"type": "string"}}
    engine = engine_with(tmp_path, properties, 'context.args has a && context.args.a == "x"')
    assert decide(engine, "t", {"a": "1", "b": "2"}).facts["context"] == {"args": {"a": "string"}}


def test_a_policy_about_another_tool_is_not_in_the_slice(tmp_path: Path) -> None:
    other = policy("other", 'forbid (principal, action == Action::"u", resource) when { context.args.b == "x" };')
    tools = [tool("t", {"b": {"type": "string"}}), tool("u", {"b": {"type": "string"}}, required=("b",))]
    engine = DecisionEngine(bundle_of(tmp_path, tools, ALLOW_ALL + other))
    assert decide(engine, "t", {"b": "x"}).facts["context"] == {}
    assert decide(engine, "u", {"b": "x"}).policy_ids == ("other",)


def test_a_key_cedar_would_read_as_an_entity_never_reaches_it(tmp_path: Path) -> None:
    open_object = {"extra": {"type": "object"}}
    engine = DecisionEngine(bundle_of(tmp_path, [tool("t", open_object)], ALLOW_ALL))
    verdict = decide(engine, "t", {"extra": {"__entity": {"type": "User", "id": "root"}}})
    assert reason_of(verdict) == ("RESERVED_KEY", "/extra/?")  # a name nobody declared is kept in no reason


def test_a_typo_in_a_class_or_a_level_is_an_error_when_the_bundle_is_loaded(tmp_path: Path) -> None:
    for when in ('context.approved.contains(Class::"sefl")', 'principal.level == Level::"admn"'):
        text = policy("typo", f"permit (principal, action, resource) when {{ {when} }};")
        with pytest.raises(BundleError, match="typo"):
            load_bundle(write_bundle(tmp_path, [tool("t")], text))


def test_property_names_of_any_kind_are_attributes(tmp_path: Path) -> None:
    name = 'a "b" \\ ñ/~'
    written = json.dumps(name, ensure_ascii=False)
    when = f'context.args has {written} && context.args[{written}] == "x"'
    engine = engine_with(tmp_path, {name: {"type": "string"}}, when)
    assert decide(engine, "t", {name: "x"}).policy_ids == ("no",)
