"""phylactery tools pin as a person uses it: new and changed tools, and nothing stored without confirmation."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import yaml
from phylactery_agent.tools.mcp.pins import load_pins
from phylactery_chassis.errors import StartError
from phylactery_cli.main import app
from typer.testing import CliRunner

from tests.support.servers.mcp import McpPlace

pytestmark = pytest.mark.slow


@pytest.fixture
def place(tmp_path: Path) -> McpPlace:
    return McpPlace(tmp_path / "mcp")


def pin(place: McpPlace, *arguments: str, typed: str | None = None, language: str = "en"):
    files = ["--servers", str(place.config), "--pins", str(place.pins), "--language", language]
    return CliRunner().invoke(app, ["tools", "pin", *files, *arguments], input=typed)


def test_nothing_is_pinned_without_a_yes_and_what_is_pinned_is_shown_before(place: McpPlace) -> None:
    kept = pin(place, typed="n\n")
    assert (kept.exit_code, place.pins.exists()) == (1, False)
    assert "Nothing was changed." in kept.output
    done = pin(place, typed="s\n", language="es")
    assert done.exit_code == 0, done.output
    assert "NUEVA mcp_test_note, que su servidor llama note:" in done.output
    assert '"description": "Keeps a note."' in done.output
    assert "Se han fijado 8 herramientas" in done.output
    assert set(load_pins(place.pins).of("test")) >= {"note", "look"}
    again = pin(place)
    assert (again.exit_code, again.output) == (0, "Every tool is as it was pinned.\n")


def test_a_changed_and_a_lost_tool_are_shown_by_their_difference(place: McpPlace) -> None:
    place.pinned()
    place.set("redescribed")
    place.set("gone")
    shown = pin(place, typed="n\n")
    assert "CHANGED mcp_test_note, which its server calls note:" in shown.output
    assert '-  "description": "Keeps a note."' in shown.output
    assert "GONE mcp_test_look, which its server called look:" in shown.output
    assert "look" in load_pins(place.pins).of("test")
    assert pin(place, "--yes").exit_code == 0
    assert "look" not in load_pins(place.pins).of("test")


def test_a_server_that_is_not_named_keeps_its_pins(place: McpPlace) -> None:
    place.pinned()
    config = yaml.safe_load(place.config.read_text())
    config["servers"]["away"] = {"command": [sys.executable, "-c", "raise SystemExit"]}
    place.config.write_text(yaml.safe_dump(config))
    assert pin(place, "test", "--yes").exit_code == 0
    failed = pin(place, "away", "--yes")
    assert (failed.exit_code, failed.stderr.splitlines()[0].startswith("tools: away: ")) == (1, True), failed.output
    assert "note" in load_pins(place.pins).of("test")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--servers", "nowhere.yaml"], "nowhere.yaml cannot be read"),
        (["--servers", ""], "no server is configured"),
        (["other", "--servers", '{"servers": {"test": {"command": ["x"]}}}'], "there is no server 'other'"),
        (["--servers", '{"servers": {"test": {}}}'], "either a command or a url"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = CliRunner().invoke(app, ["tools", "pin", *arguments, "--pins", str(tmp_path / "pins.json")])
    assert (done.exit_code, len(done.stderr.splitlines())) == (1, 1), done.output
    assert says in done.stderr


def test_what_is_exported_of_a_server_is_what_was_pinned_of_it(place: McpPlace) -> None:
    place.pinned()
    files = ["--servers", str(place.config), "--pins", str(place.pins)]
    exported = CliRunner().invoke(app, ["tools", "export", "--only", "test", *files])
    tools = {tool["name"]: tool for tool in json.loads(exported.stdout)["tools"]}
    assert all(name.startswith("mcp_test_") for name in tools)
    note, facts = tools["mcp_test_note"], tools["mcp_test_facts"]
    assert (note["catalog"]["risk"], note["catalog"]["effect"]) == ("medium", "write")
    assert note["catalog"]["asks"]["phrases"] == {"en": ["keep the note"], "es": ["anota aparte"]}
    assert note["catalog"]["asks"]["examples"]["en"] == ["keep the note buy milk"]
    assert facts["outputSchema"]["properties"] == {"count": {"type": "integer"}}
    unknown = CliRunner().invoke(app, ["tools", "export", "--only", "other", *files])
    assert (unknown.exit_code, "there is no server 'other'" in unknown.stderr) == (1, True)


async def test_an_agent_with_a_configuration_that_cannot_be_meant_does_not_start(tmp_path: Path) -> None:
    from phylactery_agent.app import build
    from phylactery_agent.settings import AgentSettings

    for number, (value, says) in enumerate(
        [("nowhere.yaml", "nowhere.yaml cannot be read"), ('{"servers": {"a": {}}}', "either a command or a url")]
    ):
        with pytest.raises(StartError, match=f"AGENT_MCP_SERVERS: .*{says}"):
            await build(AgentSettings(data_dir=tmp_path / str(number), mcp_servers=value))
    pins = tmp_path / "pins.json"
    pins.write_text("[]")
    with pytest.raises(StartError, match=r"AGENT_MCP_SERVERS: .* is not a pin file"):
        await build(
            AgentSettings(
                data_dir=tmp_path / "pins", mcp_servers='{"servers": {"a": {"command": ["x"]}}}', mcp_pins=pins
            )
        )
