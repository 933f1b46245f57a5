"""Bundles that are read once per process: a RiskGate that a test starts over the same files gets the same bundle.

To read and check the default bundle, and to prepare it for decisions, is most of the processor time of such a start, a
tenth of a second. Neither a bundle nor what is prepared of it ever changes; the answers that an engine keeps are every
RiskGate's own.
"""

from __future__ import annotations

import copy
from pathlib import Path

from phylactery_riskgate import app
from phylactery_riskgate.domain.bundle.bundle import Bundle, read_bundle
from phylactery_riskgate.domain.bundle.files import read_folder
from phylactery_riskgate.domain.policy.authorizer import Answers
from phylactery_riskgate.domain.policy.engine import DecisionEngine

_bundles: dict[tuple[str, frozenset[tuple[str, str]]], Bundle] = {}
_engines: dict[int, DecisionEngine] = {}
"""By the identity of a bundle above, which is kept."""


def read_bundles_once() -> None:
    """Make the start of every RiskGate of this process use the cache; what is activated later is read as always."""
    app.load_bundle, app.DecisionEngine = _load_bundle, _engine


def _load_bundle(folder: Path) -> Bundle:
    files = read_folder(folder)
    key = (files.signature, frozenset(files.texts.items()))
    if key not in _bundles:
        _bundles[key] = read_bundle(files)
    return _bundles[key]


def _engine(bundle: Bundle) -> DecisionEngine:
    if id(bundle) not in _engines:
        _engines[id(bundle)] = DecisionEngine(bundle)
    engine = copy.copy(_engines[id(bundle)])
    engine._answers = Answers()
    return engine
