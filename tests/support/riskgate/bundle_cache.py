"""Bundles that are read once per process: a RiskGate that a test starts over the same files gets the same bundle.

To read and check the default bundle, to prepare it for decisions and to try its own cases is most of the processor time
of such a start, a quarter of a second. Neither a bundle nor what is prepared of it ever changes, nor do the cases that
passed; the answers that an engine keeps are every RiskGate's own.
"""

from __future__ import annotations

import copy
from pathlib import Path

from phylactery_riskgate import app
from phylactery_riskgate.bundles import lifecycle
from phylactery_riskgate.bundles.acceptance import require_cases
from phylactery_riskgate.domain.bundle.bundle import Bundle, default_bundle_folder, read_bundle
from phylactery_riskgate.domain.bundle.files import read_folder
from phylactery_riskgate.domain.policy.authorizer import Answers
from phylactery_riskgate.domain.policy.engine import DecisionEngine

_MOST = 16
_read: dict[tuple[str, frozenset[tuple[str, str]]], tuple[Bundle, DecisionEngine]] = {}
"""The newest bundles by what their files say: most tests take one of a few."""
_passed: list[Bundle] = []
"""Those of them whose cases have passed."""


def read_bundles_once() -> None:
    """Make the start of every RiskGate of this process use the cache; what is activated later is read as always."""
    app.load_bundle, app.DecisionEngine = _load_bundle, _engine
    lifecycle.require_cases = _require_cases


def _load_bundle(folder: Path) -> Bundle:
    files = read_folder(folder)
    key = (files.signature, frozenset(files.texts.items()))
    if key not in _read:
        bundle = read_bundle(files)
        while len(_read) >= _MOST:
            forgotten, _ = _read.pop(next(iter(_read)))
            _passed[:] = [one for one in _passed if one is not forgotten]
        _read[key] = bundle, DecisionEngine(bundle)
    return _read[key][0]


def _engine(bundle: Bundle) -> DecisionEngine:
    made = next((engine for known, engine in _read.values() if known is bundle), None)
    if made is None:
        return DecisionEngine(bundle)
    engine = copy.copy(made)
    engine._answers = Answers()
    return engine


def _require_cases(bundle: Bundle) -> None:
    if not any(one is bundle for one in _passed):
        require_cases(bundle)
        if any(known is bundle for known, _ in _read.values()):
            _passed.append(bundle)


def default_bundle() -> Bundle:
    """Return the default bundle: most test modules about policies read it when they are imported, in every worker."""
    return _load_bundle(default_bundle_folder())


def default_engine() -> DecisionEngine:
    """Return an engine for the default bundle with answers of its own."""
    return _engine(default_bundle())


def read_beforehand(*folders: Path) -> None:
    """Read bundles, prepare them and try their cases, for the RiskGates that this process starts or forks."""
    read_bundles_once()
    for folder in folders:
        _require_cases(_load_bundle(folder))
