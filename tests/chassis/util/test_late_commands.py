"""A program imports the module of a command where the command is named, and of all where all are shown."""

from __future__ import annotations

import subprocess
import sys

import pytest
import typer
from phylactery_chassis.util.late_commands import late_group
from typer.testing import CliRunner

_EARLY = """
import typer
app = typer.Typer()
@app.callback()
def about() -> None:
    "What is early."
@app.command()
def show() -> None:
    typer.echo("shown")
"""
_LATE = """
import typer
def work() -> None:
    "Do the work."
    typer.echo("worked")
"""


@pytest.fixture
def program(tmp_path, monkeypatch) -> typer.Typer:
    (tmp_path / "early_commands.py").write_text(_EARLY)
    (tmp_path / "late_work.py").write_text(_LATE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("early_commands", "late_work"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    app = typer.Typer(cls=late_group({"early": "early_commands:app", "work": "late_work:work"}), add_completion=False)

    @app.command()
    def own() -> None:
        typer.echo("own")

    @app.callback()
    def about() -> None:
        """A program."""

    yield app
    for name in ("early_commands", "late_work"):
        sys.modules.pop(name, None)


def _imported() -> list[str]:
    return [name for name in ("early_commands", "late_work") if name in sys.modules]


@pytest.mark.parametrize(
    ("words", "said", "imported"),
    [
        (["own"], "own", []),
        (["early", "show"], "shown", ["early_commands"]),
        (["work"], "worked", ["late_work"]),
    ],
)
def test_a_command_imports_what_it_needs_and_no_other(program, words, said, imported):
    done = CliRunner().invoke(program, words)
    assert (done.exit_code, done.stdout.strip()) == (0, said)
    assert _imported() == imported


def test_help_shows_all_by_name_own_first_and_in_their_order(program):
    told = CliRunner().invoke(program, ["--help"]).stdout
    own, early, work = (told.index(words) for words in ("own ", "early  What is early.", "work   Do the work."))
    assert own < early < work


@pytest.mark.parametrize(("mistaken", "meant"), [("erly", "early"), ("wrok", "work"), ("owm", "own")])
def test_a_name_that_is_none_is_answered_with_the_likeliest(program, mistaken, meant):
    done = CliRunner().invoke(program, [mistaken])
    assert done.exit_code == 2
    assert f"Did you mean '{meant}'?" in done.output


_VERSION = """
import sys
from {module} import main
sys.argv[1:] = ["--version"]
try:
    main()
except SystemExit:
    print([name for name in ("sqlalchemy", "langgraph", "phylactery_forms", "cedarpy") if name in sys.modules])
"""


@pytest.mark.parametrize("module", ["phylactery_riskgate.cli", "phylactery_cli.main"])
def test_a_version_is_printed_without_a_database_or_an_agent(module):
    program = _VERSION.format(module=module)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    version, imported = done.stdout.splitlines()
    assert version.split()[1].count(".") == 2
    assert imported == "[]"
