"""Repeated command runs: each run forks a process that has already imported the command."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.forks import Forked

_SECONDS = 60


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a run."""

    returncode: int
    stdout: str
    stderr: str


def run(module: str, *words: str, environment: Mapping[str, str]) -> Finished:
    """Run `python -m module` with these arguments and this environment, without a terminal."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        program = Forked(module, words, environment, out=out, err=err)
        try:
            code = program.wait(_SECONDS)
        except subprocess.TimeoutExpired:
            program.kill()
            raise AssertionError(f"{module} {' '.join(words)} did not end") from None
        return Finished(code, out.read_text("utf-8"), err.read_text("utf-8"))


def run_phylactery(*words: str) -> Finished:
    """Run `phylactery` with these arguments and the test's environment."""
    return run("-c", "from phylactery_cli.main import app; app(prog_name='phylactery')", *words, environment=os.environ)


def run_riskgate(*words: str, environment: Mapping[str, str]) -> Finished:
    """Run `riskgate` with these arguments."""
    return run("phylactery_riskgate.cli", *words, environment=environment)
