"""The `riskgate` command, run in the test process."""

from __future__ import annotations

import json
from typing import Any

from phylactery_riskgate.cli import app
from typer.testing import CliRunner, Result


def run(*words: object, given: str | bytes | None = None, env: dict[str, str] | None = None) -> Result:
    """Run a command of riskgate in this process."""
    return CliRunner().invoke(app, [str(word) for word in words], input=given, env=env)


def answered(*words: object, given: str | bytes | None = None) -> dict[str, Any]:
    """Run a command that prints JSON and return the parsed output."""
    answer: dict[str, Any] = json.loads(run(*words, "--json", given=given).stdout)
    return answer
