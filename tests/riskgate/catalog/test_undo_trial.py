"""`riskgate catalog check --undo`: an undo counts once it was seen to work on the real server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from phylactery_riskgate.cli import app
from typer.testing import CliRunner, Result

from tests.support.processes.shells import write_forking
from tests.support.riskgate.bundles import ALLOW_ALL, bundle_of, tool, write_bundle
from tests.support.servers.undoing_server import schema

pytestmark = pytest.mark.slow


def entry(name: str, effect: str, **said: Any) -> dict[str, Any]:
    return {**tool(f"mcp_notes_{name}", effect=effect, **said), "schema": schema(name)}


def catalog(folder: Path, **said: Any) -> list[dict[str, Any]]:
    undone = {"undo": "tool", "undo_tool": "mcp_notes_remove", "reach": "own", "reviewed": "yes", **said}
    tools = [entry("add", "write", **undone), entry("remove", "write"), entry("notes", "read")]
    write_bundle(folder / "bundle", tools, ALLOW_ALL)
    return tools


def tried(folder: Path, *faults: str, said: str | None = None, **options: str) -> Result:
    """Run the command; ``said`` is what is answered when it asks, and without it, --yes is given."""
    program = write_forking(folder / "undoing_server", "from tests.support.servers.undoing_server import main; main()")
    server = " ".join((str(program), str(folder / "notes.json"), *faults))
    given = {
        "undo": "mcp_notes_add",
        "server": server,
        "read": "mcp_notes_notes",
        "call": '{"text": "x"}',
        "undo-call": '{"id": "{/id}"}',
        **options,
    }
    words = [word for name, value in given.items() for word in (f"--{name}", value)]
    words += ["--yes"] if said is None else []
    return CliRunner().invoke(app, ["catalog", "check", str(folder / "bundle"), *words, "--json"], input=said)


def test_an_undo_that_works_is_confirmed_and_then_counts(tmp_path):
    tools = catalog(tmp_path)
    (tmp_path / "notes.json").write_text('{"1": "before"}')
    result = tried(tmp_path)
    assert result.exit_code == 0, result.output
    assert json.loads((tmp_path / "notes.json").read_text()) == {"1": "before"}
    assert not bundle_of(tmp_path / "before", tools, ALLOW_ALL).tools["mcp_notes_add"].undoable
    tools[0]["undo_checked"] = json.loads(result.stdout)["undo_checked"]
    assert bundle_of(tmp_path / "after", tools, ALLOW_ALL).tools["mcp_notes_add"].undoable


@pytest.mark.parametrize("said", ["", "\n", "n\n", "no\n"])
def test_nothing_runs_before_the_operator_confirms_it(tmp_path, said):
    catalog(tmp_path)
    (tmp_path / "notes.json").write_text('{"1": "before"}')
    result = tried(tmp_path, "lies", said=said)  # an undo that lies would leave what the tool did
    assert result.exit_code == 1, result.output
    assert json.loads((tmp_path / "notes.json").read_text()) == {"1": "before"}


def test_what_is_run_is_shown_and_a_yes_runs_it(tmp_path):
    catalog(tmp_path)
    result = tried(tmp_path, said="y\n")
    assert result.exit_code == 0, result.output
    for shown in ("mcp_notes_add", '{"text": "x"}', "mcp_notes_remove", "undoing_server", "no policy decides"):
        assert shown in result.stderr


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("lies", "not the one before"),
        ("half", "not the one before"),
        ("restless", "changes by itself"),
        ("blind", "does not show what"),
        ("fails", "mcp_notes_add failed"),
        ("other", "another schema"),
    ],
)
def test_an_undo_that_lies_or_cannot_be_seen_is_not_confirmed(tmp_path, fault, told):
    catalog(tmp_path)
    result = tried(tmp_path, fault)
    assert result.exit_code == 1, result.output
    assert told in json.loads(result.stdout)["reason"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"undo": "nothing"}, 2),
        ({"undo": "mcp_notes_remove"}, 2),
        ({"read": "mcp_notes_remove"}, 2),
        ({"call": "[]"}, 2),
        ({"server": ""}, 2),
        ({"server": "/nowhere/at/all"}, 1),
        ({"undo-call": '{"id": "{/number}"}'}, 1),
    ],
)
def test_what_cannot_be_tried_says_why(tmp_path, options, code):
    catalog(tmp_path)
    result = tried(tmp_path, **options)
    assert result.exit_code == code, result.output
    assert result.output.strip()
