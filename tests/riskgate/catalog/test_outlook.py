"""`riskgate catalog check`: the expected decision about a typical call of each tool."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.cli import app
from phylactery_riskgate.domain.catalog.outlook import Situation
from typer.testing import CliRunner

from tests.support.riskgate.bundles import ALLOW_ALL, SETTINGS, policy, tool, write_bundle

RULES = (
    policy("asked", "permit (principal, action, resource) when { context.intent == 2 && context.origin.worst == 0 };")
    + policy("else", 'permit (principal, action, resource) when { context.approved.contains(Class::"peer") };')
    + policy("never", "forbid (principal, action, resource) when { context.origin.worst == 3 };")
)
ASKS = {"phrases": {"en": ["settle", "pay * bill"]}}


def outlook(folder: Path, *tools: dict[str, Any], policies: str = RULES, **files: Any) -> list[dict[str, Any]]:
    write_bundle(folder, list(tools), policies, **files)
    found: list[dict[str, Any]] = json.loads(run(folder, "--json"))["outlook"]
    return found


def run(*words: object) -> str:
    result = CliRunner().invoke(app, ["catalog", "check", *map(str, words)])
    assert result.exit_code in {0, 1}, result.stderr
    return result.stdout


def test_each_situation_is_decided_by_the_bundles_own_policies(tmp_path: Path) -> None:
    pay = tool("pay", {"to": {"type": "string"}}, effect="write", controls=["/to"], asks=ASKS)
    (found,) = outlook(tmp_path, pay)
    assert found == {
        "name": "pay",
        "request": "pay … bill",
        "arguments": {"to": "something"},
        "decisions": {"asked": "ALLOW", "listed": "ASK peer", "unasked": "ASK peer", "foreign": "BLOCK"},
    }


def test_an_example_is_the_request_and_a_tool_without_arguments_has_no_foreign_value(tmp_path: Path) -> None:
    asks = {**ASKS, "examples": {"es": ["Ciérralo todo"]}}
    (found,) = outlook(tmp_path, tool("close_all", effect="write", asks=asks))
    assert (found["request"], found["decisions"]["foreign"]) == ("Ciérralo todo", "ALLOW")


def test_one_value_is_foreign_and_the_others_are_the_users(tmp_path: Path) -> None:
    rule = policy("by", 'permit (principal, action == Action::"t", resource) when { context.origin.by.b == 0 };')
    arguments = {"a": {"type": "string"}, "b": {"type": "string"}}
    (found,) = outlook(tmp_path, tool("t", arguments, required=("a", "b"), controls=["/a", "/b"]), policies=rule)
    assert set(found["decisions"].values()) == {"ALLOW"}


@pytest.mark.parametrize(
    "part",
    [
        {"type": "string", "format": "email"},
        {"type": "string", "format": "uri"},
        {"type": "string", "format": "uuid"},
        {"type": "string", "minLength": 30},
        {"type": "string", "maxLength": 3},
        {"type": "string", "pattern": "^[A-Z]{3}$"},
        {"type": "integer", "minimum": 7},
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "integer", "maximum": -3},
        {"enum": ["x", "y"]},
        {"const": 4},
        {"type": "boolean"},
        {"type": "array", "items": {"type": "string"}, "minItems": 2},
        {"type": "object", "properties": {"c": {"type": "integer"}}, "required": ["c"]},
        {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
        {"type": "string", "default": "given"},
    ],
)
def test_a_call_is_made_up_that_fits_the_schema(tmp_path: Path, part: dict[str, Any]) -> None:
    (found,) = outlook(tmp_path, tool("t", {"a": part}, required=("a",)), policies=ALLOW_ALL)
    assert set(found["decisions"].values()) == {"ALLOW"}


def test_where_no_call_fits_nothing_is_foretold(tmp_path: Path) -> None:
    odd = tool("odd", {"a": {"type": "string", "pattern": "^[0-9]{7}-[A-Z]$"}}, required=("a",))
    assert outlook(tmp_path, odd)[0]["decisions"] == {}
    assert [line for line in run(tmp_path).splitlines() if line.split() == ["odd", "?", "?", "?", "?"]]


def test_a_tool_that_a_budget_counts_is_decided_as_if_nothing_was_counted(tmp_path: Path) -> None:
    budget = {"name": "few", "tools": ["t"], "per": ["user"], "window_seconds": 60, "limits": {"calls": 1}}
    (found,) = outlook(tmp_path, tool("t"), policies=ALLOW_ALL, settings={**SETTINGS, "budgets": [budget]})
    assert set(found["decisions"].values()) == {"ALLOW"}


def test_a_draft_alone_is_decided_by_the_policies_that_ship(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}
    tools = [{"name": name, "inputSchema": schema} for name in ("get_order", "cancel_order")]
    draft = tmp_path / "draft.yaml"
    draft.write_text(CliRunner().invoke(app, ["catalog", "draft", "-"], input=json.dumps(tools)).stdout)
    read, write = json.loads(run(draft, "--json"))["outlook"]
    assert set(read["decisions"].values()) == {"ALLOW"}
    assert write["decisions"]["foreign"] == "BLOCK"


def test_the_table_names_every_situation_and_says_what_it_means(tmp_path: Path) -> None:
    write_bundle(tmp_path, [tool("pay", effect="write", asks=ASKS)], RULES)
    lines = run(tmp_path).splitlines()
    assert ["TOOL", *(one.upper() for one in Situation), "REQUEST"] in [line.split() for line in lines]
    assert all(any(line.startswith(f"{one.upper()}: the user") for line in lines) for one in Situation)
    assert any(line.endswith("pay … bill") for line in lines)
