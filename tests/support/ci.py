"""What CI runs after the checks: ``python -m tests.support.ci first timing slow`` runs these tiers one after another.

A test that fails is run once more, alone. If it passes then, the run is still green and its last lines name the test
under FLAKY: it does not hold up work that has nothing to do with it, and the list says what has to be mended. Where
there are many, something is wrong with the change, and the run is red.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

MOST_FLAKY: Final = 5
MOST_REPEATED: Final = 25
"""Where more fail than that, the fault is not the moment: nothing is repeated."""
TESTS_FAILED: Final = 1
"""pytest's exit code for a run that was whole and in which tests failed; every other one but 0 is a broken run."""

Commands = Mapping[str, Sequence[str]]
TARGETS: Final = {"first": "test", "timing": "test-timing", "slow": "test-slow", "nightly": "test-nightly"}
"""The make target of each tier."""


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


def run_tier(tier: str, command: Sequence[str], alone: Sequence[str], cwd: Path) -> Run:
    """Run a tier, and what failed in it once more with the command ``alone``."""
    began, run = time.monotonic(), Run(tier)
    with tempfile.TemporaryDirectory(prefix="phylactery-ci-") as folder:
        first, again = Path(folder) / "first.json", Path(folder) / "again.json"
        code = _pytest(command, first, cwd)
        outcome = _outcome(first)
        run.passed, run.skipped = outcome.get("passed", 0), len(outcome.get("skipped", ()))
        run.failed = list(outcome.get("failed", ()))
        if code and outcome.get("exit") != TESTS_FAILED:
            run.broken = f"{' '.join(command)} ended with {outcome.get('exit', code)} before it was through"
        elif code and not run.failed:
            run.broken = f"{' '.join(command)} failed outside of any test"
        elif 0 < len(run.failed) <= MOST_REPEATED:
            print(f"\nci: once more, alone: {', '.join(run.failed)}", flush=True)
            _pytest([*alone, *run.failed], again, cwd)
            outcome = _outcome(again)
            # Whatever did not run to its end has failed again
            undone = {*outcome.get("failed", run.failed), *outcome.get("skipped", ())}
            if outcome.get("passed", 0) + len(undone) >= len(run.failed):
                run.flaky = [nodeid for nodeid in run.failed if nodeid not in undone]
                run.failed = [nodeid for nodeid in run.failed if nodeid in undone]
                run.passed += len(run.flaky)
    run.seconds = time.monotonic() - began
    return run


def report(runs: Sequence[Run]) -> int:
    """Print what came of the tiers, totals last, and return the exit code."""
    flaky = [nodeid for run in runs for nodeid in run.flaky]
    failed = [nodeid for run in runs for nodeid in run.failed]
    broken = [run.broken for run in runs if run.broken]
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
    addopts = f"{os.environ.get('PYTEST_ADDOPTS', '')} --outcome={outcome} --durations=50".strip()
    return subprocess.run(command, cwd=cwd, env={**os.environ, "PYTEST_ADDOPTS": addopts}, check=False).returncode


def _outcome(file: Path) -> dict[str, object]:
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def main(tiers: Sequence[str]) -> int:
    """Run the tiers of the checkout."""
    root = Path(__file__).resolve().parents[2]
    alone = [sys.executable, "-m", "pytest", "-n", "0"]
    return report([run_tier(tier, ["make", "--no-print-directory", TARGETS[tier]], alone, root) for tier in tiers])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
