"""What CI runs after the checks: ``python -m tests.support.ci first timing slow`` runs these tiers one after another.

A test that fails is run once more, alone. If it passes then, the run is still green and its last lines name the test
under FLAKY: it does not hold up work that has nothing to do with it, and the list says what has to be mended. Where
there are many, something is wrong with the change, and the run is red.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

MOST_FLAKY: Final = 5
MOST_REPEATED: Final = 25
"""Where more fail than that, the fault is not the moment: nothing is repeated."""
LONGEST_SECONDS: Final = 4_000
"""More than twice what the slow tier takes on two quiet cores, 27 minutes, and less than CI has for a run."""
TESTS_FAILED: Final = 1
"""pytest's exit code for a run in which tests failed."""
TARGETS: Final = {"first": "test", "timing": "test-timing", "slow": "test-slow", "nightly": "test-nightly"}
"""The make target of each tier."""
OF_THE_RUN: Final = {"PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_TESTRUNUID", "PYTEST_CURRENT_TEST"}
"""What a run tells the processes below it."""


@dataclass
class Run:
    """What one tier came to."""

    tier: str
    seconds: float = 0.0
    passed: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    flaky: list[str] = field(default_factory=list)
    broken: str = ""
    """Why the tier could not be run to its end; empty if it was."""


def environment_apart() -> dict[str, str]:
    """Return this environment for a pytest that a test starts: the options of the run around it are not its own."""
    return {name: value for name, value in os.environ.items() if name not in OF_THE_RUN}


def run_tier(tier: str, command: Sequence[str], alone: Sequence[str], cwd: Path) -> Run:
    """Run a tier, and what failed in it once more with the command ``alone``."""
    began, run = time.monotonic(), Run(tier)
    with tempfile.TemporaryDirectory(prefix="phylactery-ci-") as folder:
        first, again = Path(folder) / "first.json", Path(folder) / "again.json"
        code = _pytest(command, first, cwd)
        outcome = _outcome(first)
        run.passed, run.skipped = outcome["passed"], len(outcome["skipped"])
        run.failed = list(outcome["failed"])
        run.broken = _why_broken(code, outcome)
        if not run.broken and 0 < len(run.failed) <= MOST_REPEATED:
            print(f"\nci: once more, alone: {', '.join(run.failed)}", flush=True)
            _pytest([*alone, *run.failed], again, cwd)
            outcome = _outcome(again)
            passed = set(run.failed) - {*outcome["failed"], *outcome["skipped"], *outcome["unfinished"]}
            if outcome["passed"] == len(passed):
                run.flaky = [nodeid for nodeid in run.failed if nodeid in passed]
                run.failed = [nodeid for nodeid in run.failed if nodeid not in passed]
                run.passed += len(run.flaky)
    run.seconds = time.monotonic() - began
    return run


def _why_broken(code: int, outcome: Mapping[str, Any]) -> str:
    """Return why a run was not whole, whatever its exit code; empty if it was."""
    if outcome["errors"]:
        return f"could not be collected: {', '.join(outcome['errors'])}"
    if outcome["unfinished"]:
        return f"{len(outcome['unfinished'])} tests were not run, the first of them {outcome['unfinished'][0]}"
    if not outcome["passed"] and not outcome["failed"]:
        return f"no test was run (exit code {code})"
    if code and not (outcome["exit"] == TESTS_FAILED and outcome["failed"]):
        return f"failed outside of any test (exit code {code}, of pytest {outcome['exit']})"
    return ""


def report(runs: Sequence[Run]) -> int:
    """Print what came of the tiers, totals last, and return the exit code."""
    flaky = [nodeid for run in runs for nodeid in run.flaky]
    failed = [nodeid for run in runs for nodeid in run.failed]
    broken = [f"{run.tier}: {run.broken}" for run in runs if run.broken]
    print()
    for run in runs:
        print(f"ci: {run.tier}: {run.passed} passed in {run.seconds:.0f} s")
    for line in broken:
        print(f"ci: {line}")
    if failed:
        print("FAILED", *failed, sep="\n  ")
    if flaky:
        print("FLAKY", *flaky, sep="\n  ")
    if len(flaky) > MOST_FLAKY:
        print(f"ci: {len(flaky)} tests passed only alone; no more than {MOST_FLAKY} may")
    passed, skipped = sum(run.passed for run in runs), sum(run.skipped for run in runs)
    print(f"total: {passed} passed, {len(failed)} failed, {skipped} skipped", flush=True)
    return int(bool(failed or broken or len(flaky) > MOST_FLAKY))


def _pytest(command: Sequence[str], outcome: Path, cwd: Path) -> int:
    """Run pytest, and end it, with all that it started, if it takes too long or this process is ended."""
    added = f"--outcome={shlex.quote(str(outcome))} --durations=50"
    environment = {**os.environ, "PYTEST_ADDOPTS": f"{os.environ.get('PYTEST_ADDOPTS', '')} {added}".strip()}
    process = subprocess.Popen(command, cwd=cwd, env=environment, start_new_session=True)
    try:
        return process.wait(LONGEST_SECONDS)
    except subprocess.TimeoutExpired:
        print(f"ci: ended after {LONGEST_SECONDS} s: {' '.join(command)}", flush=True)
        return -signal.SIGTERM
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()


def _outcome(file: Path) -> dict[str, Any]:
    """Return what a run wrote; where it wrote nothing, nothing was run."""
    nothing = {"exit": None, "passed": 0, "failed": [], "skipped": [], "errors": [], "unfinished": []}
    return nothing | (json.loads(file.read_text(encoding="utf-8")) if file.exists() else {})


def main(tiers: Sequence[str]) -> int:
    """Run the tiers of the checkout."""
    if not tiers or not set(tiers) <= TARGETS.keys():
        print(f"usage: python -m tests.support.ci {{{'|'.join(TARGETS)}}} …", file=sys.stderr)
        return 2
    # A signal ends this process by an exception, on whose way the tests are ended too
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    root = Path(__file__).resolve().parents[2]
    alone = [sys.executable, "-m", "pytest", "-n", "0"]
    return report([run_tier(tier, ["make", "--no-print-directory", TARGETS[tier]], alone, root) for tier in tiers])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
