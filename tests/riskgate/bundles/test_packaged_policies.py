"""The policies shipped with RiskGate load on any catalog, and are not weaker there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.bundle.bundle import Bundle, BundleError, default_bundle_folder, load_bundle
from phylactery_riskgate.domain.intent.model import TaskFacts
from phylactery_riskgate.domain.model import Caller, CallSite, Decision, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import known
from typer.testing import CliRunner

from tests.support.riskgate.bundle_cache import default_bundle
from tests.support.riskgate.bundles import bundle_of, policy, tool

REFUND = tool("refund", {"order": {"type": "string"}}, risk="medium", effect="write", controls=["/order"])


def packaged(folder: Path, *tools: dict[str, Any]) -> Bundle:
    """Load the packaged policies with a catalog of others."""
    shutil.copytree(default_bundle_folder(), folder, ignore=shutil.ignore_patterns("tests"))
    (folder / "tools.yaml").write_text(json.dumps({"tools": list(tools)}))
    return load_bundle(folder)


def decision(bundle: Bundle, name: str, **facts: Any) -> Decision:
    """Decide about one call of a task that was shown."""
    told = {"shown": True, "intent": 2, "intent_words": (), "arguments": (), "worst": 0}
    task = TaskFacts(**{**told, "signals": 0, "signal_reasons": (), **facts})
    call = RawCall(name, "call-1", arguments_struct={})
    return DecisionEngine(bundle).decide(call, Caller("ana", "acme"), CallSite("t", "r"), task=known(task)).decision


@pytest.mark.parametrize(
    "tools", [(), (REFUND,), (tool("see", {}),), (tool("show", {"path": {"type": "string"}}, paths=["/path"]),)]
)
def test_the_packaged_policies_load_on_any_catalog(tmp_path: Path, tools: tuple[dict[str, Any], ...]) -> None:
    whole = default_bundle()
    assert [one.id for one in packaged(tmp_path / "b", *tools).policies] == [one.id for one in whole.policies]


def test_a_forbid_that_names_a_tool_the_catalog_lacks_still_forbids(tmp_path: Path) -> None:
    bundle = packaged(tmp_path / "b", REFUND)
    assert decision(bundle, "refund") is Decision.ALLOW
    assert decision(bundle, "refund", worst=3, foreign=True) is Decision.BLOCKED
    assert decision(bundle, "refund", signals=2) is Decision.BLOCKED


def test_a_tool_that_a_policy_names_and_the_catalog_lacks_stays_unknown(tmp_path: Path) -> None:
    assert decision(packaged(tmp_path / "b", REFUND), "remember") is Decision.BLOCKED


def test_policy_check_tells_what_can_never_speak(tmp_path: Path) -> None:
    packaged(tmp_path / "b", REFUND)
    result = CliRunner().invoke(app, ["policy", "check", str(tmp_path / "b")])
    assert result.exit_code == 0
    notes = [line for line in result.stdout.splitlines() if ": note: " in line]
    assert any("memory.remember: names the tool remember, which this catalog does not hold" in one for one in notes)
    assert any("context.derived.path, which no tool it covers has" in one for one in notes)
    shipped = CliRunner().invoke(app, ["policy", "check", str(default_bundle_folder())])
    assert "names the tool" not in shipped.stdout


def test_a_tool_with_the_name_of_a_packaged_one_and_another_schema_is_told(tmp_path: Path) -> None:
    packaged(tmp_path / "b", tool("remember", {"all": {"type": "boolean"}}, effect="write", risk="high"))
    result = CliRunner().invoke(app, ["policy", "check", str(tmp_path / "b")])
    assert "memory.remember: names the tool remember: this catalog's is not the packaged one" in result.stdout


@pytest.mark.parametrize(
    "statement",
    [
        'permit (principal, action == Action::"remenber", resource);',
        'forbid (principal, action, resource) when { action != Action::"refnud" };',
        "forbid (principal, action, resource) when { context.args has ordre };",
    ],
)
def test_a_slip_of_the_pen_is_refused_as_before(tmp_path: Path, statement: str) -> None:
    with pytest.raises(BundleError):
        bundle_of(tmp_path, [REFUND], policy("typo", statement))


def test_a_tool_without_an_effect_is_a_read_for_every_policy_and_can_be_told_from_one(tmp_path: Path) -> None:
    think = tool("think", {"thought": {"type": "string"}}, effect="none")
    allow = policy("reads", 'permit (principal, action in Action::"effect:read", resource);')
    never = policy("none", 'forbid (principal, action in Action::"effect:none", resource);')
    assert decision(bundle_of(tmp_path / "a", [think], allow), "think") is Decision.ALLOW
    assert decision(bundle_of(tmp_path / "b", [think, tool("see")], allow + never), "think") is Decision.BLOCKED
    assert decision(bundle_of(tmp_path / "c", [think, tool("see")], allow + never), "see") is Decision.ALLOW


@pytest.mark.parametrize(
    "more", [{"registry": [""]}, {"output": {"/id": "system"}}, {"output": {"": "naming"}}, {"risk": "critical"}]
)
def test_what_a_tool_without_an_effect_says_is_never_known(tmp_path: Path, more: dict[str, Any]) -> None:
    with pytest.raises(BundleError, match="without an effect"):
        bundle_of(
            tmp_path, [tool("think", effect="none", **more)], policy("a", "permit (principal, action, resource);")
        )
