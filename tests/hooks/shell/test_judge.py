"""Every command of the table has the effect that stands over it."""

from __future__ import annotations

from phylactery_hooks.shell.judge import judge
from phylactery_hooks.workspace import Workspace

from tests.hooks.shell import commands

ASKED = {"OUTSIDE", "UNKNOWN", "NETWORK", "SECRET"}


def table() -> list[tuple[str, str]]:
    """Return every command with its effect."""
    effects = ("READ", "WRITE", "RUN", "OUTSIDE", "SECRET", "NETWORK", "SETTINGS", "DESTROY", "ASKED")
    short = [(line, effect) for effect in effects for line in getattr(commands, effect).split("\n") if line]
    return short + commands.LONG


def test_every_command_has_the_effect_that_it_has(workspace: Workspace):
    verdicts = [(command, effect, judge(command, workspace)) for command, effect in table()]
    assert len(verdicts) >= 1_000
    assert [one for one in verdicts if one[2].effect.name not in (ASKED if one[1] == "ASKED" else {one[1]})] == []
    assert [one for one in verdicts if not one[2].reason] == []
