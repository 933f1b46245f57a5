"""The decision in process: its cost, and how it grows with the number of policies that apply to the call."""

from __future__ import annotations

import hashlib
import itertools
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from phylactery_riskgate.domain.bundle.bundle import default_bundle_folder, load_bundle
from phylactery_riskgate.domain.intent.model import UNSHOWN
from phylactery_riskgate.domain.model import Caller, CallSite, RawCall
from phylactery_riskgate.domain.policy.engine import DecisionEngine
from phylactery_riskgate.domain.policy.evidence import TaskReader, known

from benchmarks.measure import emit

_CALLS = {
    "allow": ("read_file", '{"path":"%s.txt"}'),
    "auth_required": ("write_file", '{"path":"%s.txt","content":"x"}'),
    "blocked": ("write_file", '{"path":".ssh/%s","content":"x"}'),
}
_numbers = itertools.count()
_TASKS = {
    "asked": replace(UNSHOWN, shown=True, intent=2, worst=0),
    "unasked": replace(UNSHOWN, shown=True),
}
"""Facts of a task about the write: requested in the user's own words, and not requested."""
_CALLER, _SITE = Caller("ana", "acme"), CallSite("thread", "run")
_REPEATS, _ROUNDS = 200, 10


def _micros(act: Callable[[], object]) -> float:
    """Return the processor time of one call in microseconds, the best of several rounds on a shared machine."""
    act()
    best = float("inf")
    for _ in range(_ROUNDS):
        began = time.process_time()
        for _ in range(_REPEATS):
            act()
        best = min(best, (time.process_time() - began) / _REPEATS * 1e6)
    return best


def _call(name: str) -> RawCall:
    """Return a call with a new name: a repeated call is decided faster."""
    tool, arguments = _CALLS[name]
    return RawCall(tool, "c", arguments % next(_numbers))


def _deciding(engine: DecisionEngine, name: str, task: TaskReader | None = None) -> float:
    return _micros(lambda: engine.decide(_call(name), _CALLER, _SITE, task=task))


def _engine_with(count: int) -> DecisionEngine:
    """Return the default bundle's engine with this many policies that every call of ours must evaluate."""
    with tempfile.TemporaryDirectory(prefix="phylactery-bench-") as folder:
        bundle = Path(folder) / "bundle"
        shutil.copytree(default_bundle_folder(), bundle, ignore=shutil.ignore_patterns("tests"))
        more = count - len(load_bundle(bundle).policies)
        (bundle / "policies" / "bench.cedar").write_text(
            "".join(
                f'@id("bench.{number}") @title("Bench {number}")\n'
                'forbid (principal, action in [Action::"read_file", Action::"write_file"], resource)\n'
                f'when {{ context.args.path like "*/never-{number}/*" }};\n'
                for number in range(max(0, more))
            )
        )
        return DecisionEngine(load_bundle(bundle))


def run() -> None:
    """Print the lines."""
    engine = DecisionEngine(load_bundle(default_bundle_folder()))
    canonical = json.dumps({"path": "a.txt"}).encode()
    floor = _micros(lambda: hashlib.sha256(canonical).hexdigest())
    for name in _CALLS:
        verdict = engine.decide(_call(name), _CALLER, _SITE)
        micros = _deciding(engine, name)
        emit(f"decision_{name}_us", micros, "us", decision=str(verdict.decision), floor_sha256_us=floor)
    for name, facts in _TASKS.items():
        verdict = engine.decide(_call("auth_required"), _CALLER, _SITE, task=known(facts))
        micros = _deciding(engine, "auth_required", known(facts))
        emit(f"decision_task_{name}_us", micros, "us", decision=str(verdict.decision), floor_sha256_us=floor)
    for count in (10, 100, 1_000):
        grown = _engine_with(count)
        times = {name: _deciding(grown, name) for name in _CALLS}
        told = {f"{name}_us": micros for name, micros in times.items()}
        emit(f"decision_{count}_us", max(times.values()), "us", policies=count, **told, floor_sha256_us=floor)
