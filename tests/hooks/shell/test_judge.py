"""Every command of the table has the effect that stands over it."""

from __future__ import annotations

import pytest
from phylactery_hooks.shell.judge import judge
from phylactery_hooks.workspace import Workspace

from tests.hooks.shell import commands

ASKED = {"OUTSIDE", "UNKNOWN", "NETWORK", "SECRET"}


def table() -> list[tuple[str, str]]:
    """Return every command with its effect."""
    effects = ("READ", "WRITE", "RUN", "OUTSIDE", "SECRET", "NETWORK", "SETTINGS", "DESTROY", "ASKED")
    short = [(line, effect) for effect in effects for line in getattr(commands, effect).split("\n") if line]
    return short + commands.LONG


@pytest.mark.parametrize(("command", "effect"), table())
def test_a_command_has_the_effect_that_it_has(command: str, effect: str, workspace: Workspace):
    verdict = judge(command, workspace)
    found = verdict.effect.name
    assert found in ASKED if effect == "ASKED" else found == effect, verdict
    assert verdict.reason
