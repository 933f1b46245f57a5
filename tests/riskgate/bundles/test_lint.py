from __future__ import annotations

import unicodedata
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import Bundle, BundleError

from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, policy, tool

SELF = 'context.approved.contains(Class::"self")'
BIG = "context.args.n > 1"
TOOLS = [tool("t", {"a": {"type": "string"}, "n": {"type": "integer"}}, required=("a", "n"))]


def load(folder: Path, statement: str, tools: list[dict[str, Any]] = TOOLS) -> Bundle:
    return bundle_of(folder, tools, policy("probe", statement) if statement.endswith("};") else statement)


@pytest.mark.parametrize(
    "statement",
    [
        f"permit (principal, action, resource) when {{ {SELF} }};",
        f"forbid (principal, action, resource) unless {{ {SELF} }};",
        f"permit (principal, action, resource) unless {{ !{SELF} }};",
        f"forbid (principal, action, resource) when {{ !{SELF} }};",
        f"permit (principal, action, resource) when {{ !(!{SELF}) }};",
        f'permit (principal, action == Action::"t", resource) when {{ context.args.a == "x" && ({SELF} || {BIG}) }};',
        'permit (principal, action, resource) when { context.approved.containsAll([Class::"self", Class::"peer"]) };',
        'permit (principal, action, resource) when { context.approved.containsAny([Class::"self", Class::"peer"]) };',
    ],
)
def test_an_approval_that_can_only_widen_is_accepted(tmp_path: Path, statement: str) -> None:
    assert load(tmp_path, statement).policies[0].id == "probe"


@pytest.mark.parametrize(
    "statement",
    [
        f"forbid (principal, action, resource) when {{ {SELF} }};",
        f"permit (principal, action, resource) unless {{ {SELF} }};",
        f"permit (principal, action, resource) when {{ !{SELF} }};",
        f"forbid (principal, action, resource) unless {{ !{SELF} }};",
        f'permit (principal, action == Action::"t", resource) when {{ context.args.a == "x" || !({SELF} && {BIG}) }};',
    ],
)
def test_an_approval_that_would_narrow_is_refused(tmp_path: Path, statement: str) -> None:
    with pytest.raises(BundleError, match="may only widen"):
        load(tmp_path, statement)


@pytest.mark.parametrize(
    "when",
    [
        'context.approved == [Class::"self"]',
        "context.approved.isEmpty()",
        f"if {SELF} then true else false",
        f"{SELF} == true",
        f"[{SELF}].contains(true)",
        '[Class::"self"].containsAll(context.approved)',
        "context.approved.containsAll(context.approved)",
        'context has approved && context.args.a == "x"',
        "context == context",
        'Class::"self" in context.approved',
        f"{{x: {SELF}}}.x",
    ],
)
def test_an_approval_used_in_any_other_form_is_refused(tmp_path: Path, when: str) -> None:
    with pytest.raises(BundleError, match=r"all\.cedar:1"):
        load(tmp_path, f"permit (principal, action, resource) when {{ {when} }};")


@pytest.mark.parametrize(
    "when",
    [
        "context.args.n + 1 > 2",
        "context.args.n * 2 > 2",
        "context.args.n - 1 > 2",
        "-context.args.n > 2",
        f"{SELF} && context.args.n + 1 > 2",
        'datetime("2026-01-01").offset(duration("1d")) > datetime("2026-01-01")',
    ],
)
def test_what_can_fail_while_it_is_evaluated_is_refused(tmp_path: Path, when: str) -> None:
    with pytest.raises(BundleError, match="can fail"):
        load(tmp_path, f'permit (principal, action == Action::"t", resource) when {{ {when} }};')


@pytest.mark.parametrize(
    "when", ["context.args has amuont", "context has argz", "context.derived has paht", "principal has lvel"]
)
def test_has_with_a_name_that_does_not_exist_is_refused(tmp_path: Path, when: str) -> None:
    with pytest.raises(BundleError, match="has asks for"):
        load(tmp_path, f"forbid (principal, action, resource) when {{ {when} }};")


def test_has_with_a_name_one_of_the_tools_has_is_accepted(tmp_path: Path) -> None:
    statement = 'forbid (principal, action, resource) when { context.args has b && context.args.b == "x" };'
    assert load(tmp_path, statement, [*TOOLS, tool("u", {"b": {"type": "string"}})]).policies


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (ALLOW_ALL + "\n\n" + ALLOW_ALL, 3, "repeats the @id allow"),
        ("// first\npermit (principal, action, resource);", 2, "@id"),
        ('@id("") @title("x") permit (principal, action, resource);', 1, "@id"),
        ('@id("a b") @title("x") permit (principal, action, resource);', 1, "@id"),
        ('@id("a") permit (principal, action, resource);', 1, "@title"),
    ],
)
def test_every_policy_has_an_id_of_its_own_and_a_title(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(BundleError, match=message) as caught:
        bundle_of(tmp_path, TOOLS, text)
    assert (caught.value.file, caught.value.line) == ("policies/all.cedar", line)


CRITICAL = [tool("wipe", risk="critical", effect="irreversible")]
GUARD = policy(
    "guard",
    'forbid (principal, action in Action::"risk:critical", resource) '
    'unless { context.approved.contains(Class::"peer") };',
)


@pytest.mark.parametrize(
    "text",
    [
        ALLOW_ALL,
        policy("x", f"permit (principal, action, resource) when {{ {SELF} }};"),
        policy("x", 'permit (principal == User::"root", action == Action::"wipe", resource);'),
        ALLOW_ALL + GUARD.replace('"peer"', '"self"'),
        ALLOW_ALL + GUARD.replace("(principal,", '(principal in Group::"ops",'),
        ALLOW_ALL + GUARD.replace("risk:critical", "risk:high"),
        ALLOW_ALL + GUARD.replace("unless {", 'unless { principal.level == Level::"system" ||'),
        ALLOW_ALL + GUARD.replace("unless {", 'when { principal.level == Level::"user" } unless {'),
        ALLOW_ALL + GUARD.replace('contains(Class::"peer")', 'containsAny([Class::"self", Class::"peer"])'),
    ],
)
def test_a_critical_tool_that_could_run_without_somebody_else_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(BundleError, match="the critical tool wipe"):
        bundle_of(tmp_path, CRITICAL, text)


@pytest.mark.parametrize(
    "text",
    [
        ALLOW_ALL + GUARD,
        ALLOW_ALL + GUARD.replace("unless {", 'unless { principal.level == Level::"admin" &&'),
        ALLOW_ALL + GUARD.replace('contains(Class::"peer")', 'containsAny([Class::"dual", Class::"peer"])'),
        ALLOW_ALL + GUARD.replace('contains(Class::"peer")', 'containsAll([Class::"self", Class::"peer"])'),
        policy("x", 'permit (principal, action, resource) when { context.approved.contains(Class::"dual") };'),
    ],
)
def test_a_critical_tool_behind_somebody_else_is_accepted(tmp_path: Path, text: str) -> None:
    assert bundle_of(tmp_path, CRITICAL, text).tools["wipe"].risk == "critical"


RANGED = {
    "limit": {"type": "integer", "minimum": 1, "maximum": 100},
    "share": {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
    "mode": {"enum": ["read", "write"]},
    "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
    "url": {"type": "string", "format": "uri"},
    "path": {"type": "string"},
    "list": {"type": "array", "items": {"type": "integer"}},
    "level": {"type": "integer", "enum": [1, 2]},
}
NEVER = [
    ("context.args.limit > 200", "context.args.limit is never 200: it is between 1 and 100"),
    ("context.args.limit == 0", "is never 0"),
    ("0 < context.args.limit", "is never 0"),
    ('context.args.share.greaterThan(decimal("1.5"))', "is never 1.5: it is between 0 and 1"),
    ('context.args.mode == "reed"', "is never reed: it is one of read, write"),
    ('context.args.mode != "WRITE"', "is never WRITE"),
    ('context.args.tags.contains("c")', "context.args.tags is never c"),
    ('context.args.tags.containsAny(["a", "c"])', "is never c"),
    ("context.args.level == 3", "is one of 1, 2"),
    ('context.derived.url.host == "Evil.com"', "it has no capital letter"),
    ('context.derived.url.domains.contains("Evil.com")', "it has no capital letter"),
    ('context.derived.path.suffixes.contains(".PEM")', "it has no capital letter"),
    ('context.derived.url.host like "*.Bank.com"', "like asks for capital letters"),
    ("context.derived.list.count < -1", "it is at least 0"),
    ("context.targets.unlisted == -5", "it is at least 0"),
]
SOMETIMES = [
    "context.args.limit >= 100",
    'context.args.mode == "read"',
    'context.args.share.lessThan(decimal("0.5"))',
    'context.derived.url.host == "evil.com"',
    'context.derived.path.suffixes.contains(".pem")',
    "context.derived.list.count == 0",
    'context.args.path == "ANYTHING"',
]


def looks_at(folder: Path, when: str) -> Bundle:
    one = tool("t", RANGED, required=tuple(RANGED), paths=["/path"])
    guards = " && ".join(f"context.derived has {name}" for name in ("url", "path", "list"))
    statement = f'forbid (principal, action == Action::"t", resource) when {{ {guards} && {when} }};'
    return bundle_of(folder, [one], ALLOW_ALL + policy("probe", statement))


@pytest.mark.parametrize(("when", "message"), NEVER)
def test_a_literal_outside_what_a_fact_can_be_is_refused(tmp_path: Path, when: str, message: str) -> None:
    with pytest.raises(BundleError) as caught:
        looks_at(tmp_path, when)
    assert message in str([str(one) for one in caught.value.all])


@pytest.mark.parametrize("when", SOMETIMES)
def test_a_literal_a_fact_can_be_is_accepted(tmp_path: Path, when: str) -> None:
    assert looks_at(tmp_path, when).policies[1].id == "probe"


def test_a_literal_one_of_the_tools_can_have_is_accepted(tmp_path: Path) -> None:
    narrow = tool("t", {"n": {"type": "integer", "maximum": 5}})
    wide = tool("u", {"n": {"type": "integer", "maximum": 500}})
    statement = "forbid (principal, action, resource) when { context.args has n && context.args.n == 100 };"
    assert bundle_of(tmp_path / "a", [narrow, wide], ALLOW_ALL + policy("probe", statement))
    with pytest.raises(BundleError, match="is never 100"):
        bundle_of(tmp_path / "b", [narrow], ALLOW_ALL + policy("probe", statement))


def test_every_fault_of_every_policy_is_told_at_once(tmp_path: Path) -> None:
    text = "".join(
        policy(f"p{number}", f"forbid (principal, action, resource) when {{ {when} }};")
        for number, when in enumerate(("context.args has amuont", "1 + 1 == 2", "context.nothing", "true"))
    )
    with pytest.raises(BundleError) as caught:
        bundle_of(tmp_path, TOOLS, ALLOW_ALL + "\n" + text)
    assert {one.message.split(":")[0] for one in caught.value.all} == {"p0", "p1", "p2"}
    assert {one.line for one in caught.value.all} == {2, 4, 6}


@pytest.mark.parametrize(
    "when",
    [
        'context.args.a == "cafe\u0301.txt"',
        'context.args.a like "nin\u0303o/*"',
        '["a", "cafe\u0301"].contains(context.args.a)',
        'context.args.n > 1 && (context.args.a == "x" || context.args.a == "\u212b.txt")',
    ],
)
def test_a_name_in_another_normal_form_is_refused_because_no_path_is_ever_bound_so(tmp_path: Path, when: str) -> None:
    with pytest.raises(BundleError, match=r"all\.cedar:1.*NFC"):
        load(tmp_path, f'forbid (principal, action == Action::"t", resource) when {{ {when} }};')
    composed = unicodedata.normalize("NFC", when)
    assert load(tmp_path, f'forbid (principal, action == Action::"t", resource) when {{ {composed} }};')
