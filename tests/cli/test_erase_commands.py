"""Every command with 'erase' that is printed or documented is one that exists, with options that it takes."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import phylactery_gateway.__main__ as gateway
import pytest
import typer
from phylactery_cli.main import app as phylactery
from phylactery_riskgate.cli import app as riskgate

ROOT = Path(__file__).parents[2]
COMMANDS = {"phylactery": phylactery, "riskgate": riskgate}
FOUND = re.compile(
    r"(?P<of>phylactery|riskgate|python -m phylactery_gateway)(?P<words>(?: [\w-]+)*? erase(?![\w-])[^`\"\n#;,()|]*)"
)
PLACED = re.compile(r"\{[^}]*\}")
WRAPPED = re.compile("`[^`]*`")
"""A command in a text, which may go on in the next line."""


def _one_line(found: re.Match[str]) -> str:
    return found[0].replace("\n", " ")


def commands() -> Iterator[tuple[str, str]]:
    """Return each command, where it stands and how it is written, with a value for each placeholder."""
    places = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "services").rglob("*.py"),
        *(ROOT / "services").rglob("*.ftl"),
        *(ROOT / "clients" / "cli").rglob("*.py"),
        *(ROOT / "clients" / "cli").rglob("*.ftl"),
    ]
    for path in sorted(places):
        parts = path.read_text().split("```")
        text = "\n".join(part if at % 2 else WRAPPED.sub(_one_line, part) for at, part in enumerate(parts))
        for line in text.splitlines():
            for found in FOUND.finditer(line):
                written = PLACED.sub("wa:usr_1", found["words"]).replace("…", "x")
                written = re.split(r"  |\\n|' |\. | covers| abarca|: ", written)[0].strip().rstrip(".'")
                yield str(path.relative_to(ROOT)), f"{found['of']} {written}"


ALL = sorted(set(commands()))


def test_they_are_found() -> None:
    places = {place for place, _ in ALL}
    assert {"docs/commands.md", "docs/whatsapp.md", "services/gateway/phylactery_gateway/__main__.py"} <= places
    assert any(place.endswith("es.ftl") for place in places)


@pytest.mark.parametrize(("place", "command"), ALL)
def test_a_command_that_is_printed_or_documented_can_be_run(
    place: str, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if command.startswith("python -m phylactery_gateway"):
        called: list[str] = []
        monkeypatch.setattr(gateway, "erase_person", lambda *given: called.extend(given))
        gateway.main(shlex.split(command)[3:])
        assert len(called) == 2, place
        return
    name, *words = shlex.split(command)
    context = parsed(typer.main.get_command(COMMANDS[name]), name, words)
    assert context.info_name == "erase", place


def parsed(command: Any, name: str, words: list[str], parent: Any = None) -> Any:
    """Return the context of the command that the words call. Raise UsageError for an option that does not exist."""
    context = command.make_context(name, words, parent=parent)
    if not hasattr(command, "resolve_command"):
        return context
    found, below, rest = command.resolve_command(context, [*context._protected_args, *context.args])
    assert below is not None
    return parsed(below, str(found), rest, context)
