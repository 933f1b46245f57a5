"""Options shared by the commands: errors for unreadable tokens and unreachable targets."""

from __future__ import annotations

from pathlib import Path

import pytest
from phylactery_cli.main import app
from typer.testing import CliRunner, Result

from tests.support.cases import each_case

NOBODY = "127.0.0.1:1"
ASKING = {
    "runs": [("list",), ("show", "r1"), ("unknown",), ("cancel", "r1", "--yes")],
    "graphs": [("list",), ("show",)],
    "threads": [("list",), ("show", "t1"), ("delete", "t1", "--yes")],
    "memory": [("list",), ("search", "té"), ("outputs",), ("profile",), ("erase", "--yes")],
}
"""Groups whose options stand before the command."""
AFTER = [
    ("approvals", "list"),
    ("approvals", "show", "a1"),
    ("approvals", "approve", "a1"),
    ("approvals", "reject", "a1"),
    ("tools", "list"),
]
"""Commands that take the same options themselves."""
CALLS = [((group,), words) for group, commands in ASKING.items() for words in commands]
CALLS += [(words, ()) for words in AFTER]


def run(before: tuple[str, ...], after: tuple[str, ...], *options: str) -> Result:
    return CliRunner().invoke(app, [*before, *options, *after], env={"COLUMNS": "300", "TERM": "dumb"})


@pytest.mark.parametrize(("before", "after"), CALLS)
def test_a_token_that_cannot_be_read_is_named_before_anybody_is_asked(
    tmp_path: Path, before: tuple[str, ...], after: tuple[str, ...]
):
    said = run(before, after, "--target", NOBODY, "--token-file", str(tmp_path / "gone"))
    assert said.exit_code == 2
    told = " ".join(said.stderr.replace("│", " ").split())
    assert f"--token-file: {tmp_path / 'gone'} cannot be read (No such file or directory)" in told
    assert "answers" not in told


@each_case(
    ("language", "told"),
    [
        ("en", "nothing answers at 127.0.0.1:1; phylactery up starts the services"),
        ("es", "nada responde en 127.0.0.1:1; phylactery up arranca los servicios"),
    ],
)
@each_case(("before", "after"), CALLS)
def test_a_service_that_is_away_is_told_in_one_line_that_begins_with_the_command(
    before: tuple[str, ...], after: tuple[str, ...], language: str, told: str
):
    said = run(before, after, "--target", NOBODY, "--language", language)
    assert said.exit_code == 1
    assert said.stderr == f"{before[0]}: {told}\n"
    assert said.stdout == ""
