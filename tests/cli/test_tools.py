"""phylactery tools export, and adding an agent's tool to RiskGate's catalog."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from phylactery_agent.tools.export import MAX_FORMS, phrases_of
from phylactery_agent.tools.specs import BUILTIN_SPECS
from phylactery_cli.main import app
from phylactery_cli.supervisor import running
from phylactery_riskgate.cli import app as riskgate
from phylactery_riskgate.domain.catalog.catalog import read_catalog
from phylactery_riskgate.domain.documents import read_document
from phylactery_riskgate.domain.intent.understood import is_heard
from phylactery_riskgate.domain.model import CatalogTool
from typer.testing import CliRunner

from tests.support.processes.commands import run_phylactery
from tests.support.processes.stack import ForkedStack
from tests.support.riskgate.bundle_cache import default_bundle

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def exported() -> str:
    result = CliRunner().invoke(app, ["tools", "export"])
    assert result.exit_code == 0
    return result.stdout


@pytest.fixture(scope="module")
def drafted(exported: str) -> dict[str, CatalogTool]:
    """The catalog RiskGate proposes for the agent's own tools."""
    result = CliRunner().invoke(riskgate, ["catalog", "draft", "-", "--from-agent"], input=exported)
    assert result.exit_code == 0, result.stderr
    return read_catalog(read_document("tools.yaml", result.stdout), ("user",))


def test_every_tool_of_the_agent_is_exported_with_its_schema_and_contract(exported: str) -> None:
    tools = {tool["name"]: tool for tool in json.loads(exported)["tools"]}
    for spec in BUILTIN_SPECS:
        tool = tools[spec.name]
        assert tool["inputSchema"] == json.loads(json.dumps(dict(spec.schema)))
        assert tool["annotations"]["readOnlyHint"] == (spec.contract.effect == "read")
        assert tool["catalog"].get("forms_only", False) == spec.forms_only
        assert bool(tool["catalog"]["asks"]["examples"]["es"]) != spec.forms_only, "nobody asks for these"


def test_what_is_drafted_of_the_agents_tools_is_the_contract_they_have(drafted: dict[str, CatalogTool]) -> None:
    shipped = default_bundle().tools
    for spec in BUILTIN_SPECS:
        tool = drafted[spec.name]
        assert tool.schema_hash == spec.schema_hash == shipped[spec.name].schema_hash
        assert (tool.risk, tool.effect, tool.idempotency) == (
            spec.contract.risk,
            spec.contract.effect,
            spec.contract.idempotency,
        )
        assert tool.forms_only == spec.forms_only


def test_every_example_of_the_agents_is_heard_by_the_phrases_its_patterns_stand_for(
    drafted: dict[str, CatalogTool],
) -> None:
    unheard = [
        (spec.name, example.text)
        for spec in BUILTIN_SPECS
        for example in spec.examples
        if not is_heard(drafted[spec.name], example.text)
    ]
    assert unheard == []


@pytest.mark.parametrize(
    ("expression", "phrases"),
    [
        (
            r"(?:write|save)\s+(?P<content>.+)\s+(?:to|in)\s+(?P<path>\S+)",
            ["write * to", "write * in", "save * to", "save * in"],
        ),
        (r"read(?:\s+me)?\s+(?:the\s+)?(?P<path>.+)", ["read"]),
        (r"a[nñ]ade\s+(?P<x>[a-z]{1,9})\s+fin", ["añade * fin"]),
        (r"don['’]?t\s+forget:?\s+(?P<x>.+)", ["don't forget"]),
        (r"(?P<x>.+)", []),
        (r"wait [0-9]{1,3} days", ["wait * days"]),
        (r"(?=look)look", []),
        (r"(lost", []),
        (r"[never", []),
        ("x{1", []),
        ("(?:" + "|".join(f"a{number}" for number in range(MAX_FORMS)) + ")(?:b|c)", []),
        ("(?:a|b)" * 64, []),
    ],
)
def test_a_pattern_stands_for_phrases_or_for_none(expression: str, phrases: list[str]) -> None:
    assert list(phrases_of(expression)) == phrases


def test_the_tools_of_a_module_are_exported_with_the_others() -> None:
    done = run_phylactery("tools", "export", "--module", "tests.support.agent.counter_tool")
    assert done.returncode == 0, done.stderr
    names = [tool["name"] for tool in json.loads(done.stdout)["tools"]]
    assert {spec.name for spec in BUILTIN_SPECS} < set(names)


def test_a_module_that_is_not_there_is_one_sentence() -> None:
    result = CliRunner().invoke(app, ["tools", "export", "--module", "no_such_module"])
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "phylactery: No module named 'no_such_module'\n"


def test_the_tools_of_a_running_agent_are_listed_for_people_and_for_machines(tmp_path: Path) -> None:
    quiet = {name: {f"{name.upper()}_LOG_LEVEL": "ERROR"} for name in ("agent", "riskgate", "memory")}
    with running(ForkedStack(tmp_path, {"agent": 0, "riskgate": 0, "memory": 0}, extra_env=quiet)) as stack:
        target = ["--target", stack.target("agent")]
        listed = CliRunner().invoke(app, ["tools", "list", *target, "--language", "es"])
        assert listed.exit_code == 0, listed.output
        echo = next(line for line in listed.output.splitlines() if line.split()[0] == "echo")
        assert echo.split()[1:5] == ["activa", "BAJO", "read", "builtin"]
        assert "repetir un texto" in echo
        for_machines = CliRunner().invoke(app, ["tools", "list", *target, "--json"])
    tools = {tool["name"]: tool for tool in map(json.loads, for_machines.stdout.splitlines())}
    assert {spec.name for spec in BUILTIN_SPECS} <= set(tools)
    assert (tools["write_file"]["risk"], tools["write_file"]["idempotency"]) == ("MEDIUM", "RECONCILABLE")
    assert tools["write_file"]["control_arguments"] == ["/path"]
    gone = CliRunner().invoke(app, ["tools", "list", *target])
    assert (gone.exit_code, gone.stderr.count("\n")) == (1, 1)
