"""Targets: the destinations of a call, and whether the bundle lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.domain.bundle.bundle import BundleError
from phylactery_riskgate.domain.model import Decision
from phylactery_riskgate.domain.policy.engine import DecisionEngine

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, bundle_of, decide, policy, tool

PROPERTIES: dict[str, Any] = {
    "url": {"type": "string", "format": "uri"},
    "to": {"type": "array", "items": {"type": "string", "format": "email"}},
    "note": {"type": ["string", "null"]},
}
SEND = tool("send", PROPERTIES, effect="write", targets=["/url", "/to"])
LISTED = ["example.org", "*.bank.example"]


def engine_over(folder: Path, condition: str, entry: dict[str, Any] = SEND) -> DecisionEngine:
    policies = ALLOW_ALL + policy("no", f"forbid (principal, action, resource) when {{ {condition} }};")
    return DecisionEngine(bundle_of(folder, [entry], policies, settings={**SETTINGS, "targets": {"allow": LISTED}}))


@pytest.mark.parametrize(
    ("arguments", "unlisted"),
    [
        ({}, 0),
        ({"note": "https://evil.example"}, 0),
        ({"url": "https://example.org/x"}, 0),
        ({"url": "https://EXAMPLE.org./x"}, 0),
        ({"url": "https://www.example.org/x"}, 1),
        ({"url": "https://pay.bank.example"}, 0),
        ({"url": "https://a.b.bank.example"}, 0),
        ({"url": "https://bank.example"}, 1),
        ({"url": "https://evilbank.example"}, 1),
        ({"url": "https://bank.example.evil.example"}, 1),
        ({"url": "https://evil.example/?x=.bank.example"}, 1),
        ({"url": "https://pay.bank.example@evil.example/"}, 1),
        ({"url": "mailto:ana@example.org"}, 1),
        ({"url": "https://10.0.0.1/"}, 1),
        ({"to": ["ana@example.org", "bob@pay.bank.example"]}, 0),
        ({"to": ["ana@example.org", "bob@evil.example", "eve@evil.example", "eve@evil.example"]}, 2),
    ],
)
def test_what_is_not_listed_is_told_by_its_host(tmp_path: Path, arguments: dict[str, Any], unlisted: int) -> None:
    engine = engine_over(tmp_path, f"context.targets.unlisted != {unlisted}")
    assert decide(engine, "send", arguments).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "condition",
    [
        "context.targets.count == 3",
        "context.targets.listed == 1",
        'context.targets.hosts == ["evil.example", "pay.bank.example"]',
        'context.targets.domains.containsAll(["example", "evil.example", "bank.example"])',
    ],
)
def test_policies_see_how_many_and_where(tmp_path: Path, condition: str) -> None:
    arguments = {"url": "https://evil.example/a", "to": ["a@evil.example", "b@pay.bank.example"]}
    verdict = decide(engine_over(tmp_path, condition), "send", arguments)
    assert (verdict.decision, verdict.policy_ids) == (Decision.BLOCKED, ("no",))
    assert "evil" not in str(verdict.facts)


def test_a_host_readers_could_disagree_about_blocks_where_a_policy_looks(tmp_path: Path) -> None:
    verdict = decide(engine_over(tmp_path, "context.targets.unlisted > 9"), "send", {"url": "https://0x7f.1/"})
    assert (verdict.reasons[0].code, verdict.reasons[0].path) == ("VALUE_NOT_REPRESENTABLE", "/url")


def test_a_tool_without_targets_has_none(tmp_path: Path) -> None:
    engine = engine_over(tmp_path, "context.targets.count > 0", tool("echo", {"url": PROPERTIES["url"]}))
    assert decide(engine, "echo", {"url": "https://evil.example"}).decision is Decision.ALLOW


@pytest.mark.parametrize(
    "pattern", ["", "*", "*.", "Example.org", "a..b", "https://a", "*.*.a", "a.*", "é.example", " a"]
)
def test_a_pattern_that_names_no_host_is_no_bundle(tmp_path: Path, pattern: str) -> None:
    with pytest.raises(BundleError, match=r"targets/allow/0: .*neither a host"):
        bundle_of(tmp_path, [SEND], ALLOW_ALL, settings={**SETTINGS, "targets": {"allow": [pattern]}})


@pytest.mark.parametrize("pointer", ["/note", "/nothing"])
def test_what_has_no_host_is_no_target(tmp_path: Path, pointer: str) -> None:
    with pytest.raises(BundleError, match=r"neither a text of format uri|leads to no property"):
        bundle_of(tmp_path, [tool("send", PROPERTIES, targets=[pointer])], ALLOW_ALL)
