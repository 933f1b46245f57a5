"""Repeated command runs: each run forks a process that has already imported the command."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.processes.forks import Forked, shared_address

_SECONDS = 60
_FORKING = """
import signal
from phylactery_cli import main, supervisor
from tests.support.processes import forks, stack
signal.signal(signal.SIGINT, signal.default_int_handler)
forks.share_forks({address!r})
supervisor.Stack._begin = stack.ForkedStack._begin
main.app(prog_name="phylactery")
"""
"""The command as a fork, whose services are forks too: an interpreter that begins anew takes three seconds for each."""


@dataclass(frozen=True)
class Finished:
    """The exit code and output of a run."""

    returncode: int
    stdout: str
    stderr: str


def run(module: str, *words: str, environment: Mapping[str, str], seconds: float = _SECONDS) -> Finished:
    """Run `python -m module` with these arguments and this environment, without a terminal, for so long at most."""
    with tempfile.TemporaryDirectory() as folder:
        out, err = Path(folder, "out"), Path(folder, "err")
        program = Forked(module, words, environment, out=out, err=err)
        try:
            code = program.wait(seconds)
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


def forking_phylactery() -> str:
    """Return the program text of a `phylactery` whose services are forks of the process that it is a fork of itself."""
    return _FORKING.format(address=shared_address())


def run_with_services(*words: str) -> Finished:
    """Run a command of `phylactery` that starts services and stops them, with the test's environment."""
    return run("-c", forking_phylactery(), *words, environment=os.environ, seconds=250)
